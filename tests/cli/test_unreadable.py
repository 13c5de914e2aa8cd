"""What the system does not let be read, empty paths and absurd peaks: one line that names the place, exit code 2."""

import errno
import os
from pathlib import Path

import pytest

TRACES = Path(__file__).parents[2] / "traces"
EAGER = TRACES / "eager-decode.json.gz"
MODEL = ("--model", TRACES / "founding" / "config.json", "--batch", "8", "--context", "512")
CARD = ("--gpu", "NVIDIA H200")


@pytest.fixture
def refused(run):
    def call(*args):
        code, out, err = run(*args)
        assert (code, out) == (2, "")
        return err

    return call


@pytest.mark.parametrize("command", ["inspect", "serverlog", "reconcile"])
def test_a_closed_standard_input(refused, monkeypatch, command):
    monkeypatch.setattr("sys.stdin", None)
    assert "standard input is closed" in refused(command, "-")


@pytest.mark.parametrize(
    "args",
    [
        ("inspect", None),
        ("serverlog", None),
        ("reconcile", EAGER, "--server-log", None),
        ("roofline", *MODEL, "--trace", None),
        ("kernels", EAGER, "--shapes-from", None),
    ],
    ids=lambda args: args[0],
)
def test_a_disk_that_fails(refused, monkeypatch, tmp_path, args):
    """The file gives 10 bytes and then an input/output error."""
    path = tmp_path / "failing.log"
    path.write_bytes(b"0123456789")

    class Failing:
        left = 10

        def read(self, size):
            if not self.left:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.left -= (now := min(size, self.left))
            return b"x" * now

        def close(self):
            pass

    real = Path.open

    def opened(self, *rest, **named):
        return Failing() if self == path else real(self, *rest, **named)

    monkeypatch.setattr(Path, "open", opened)
    err = refused(*(path if arg is None else arg for arg in args))
    assert f"cannot be read after byte 10: input/output error — {path}" in err


@pytest.mark.parametrize("command", ["inspect", "serverlog"])
def test_a_folder_that_may_not_be_listed(refused, monkeypatch, tmp_path, command):
    def forbidden(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", forbidden)
    assert f"cannot be read: permission denied — {tmp_path}" in refused(command, tmp_path)


@pytest.mark.parametrize("flag", ["--peak-gbps", "--peak-tflops"])
@pytest.mark.parametrize("text", ["1e-300", "0.0009", "1.1e9", "1e17"])
def test_absurd_peaks(refused, flag, text):
    for args in (("roofline", *MODEL, *CARD), ("reconcile", EAGER, *MODEL), ("kernels", EAGER)):
        assert f"{flag} is no peak of any device: '{text}'" in refused(*args, flag, text)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("PATH", ("inspect", "")),
        ("PATH", ("serverlog", "")),
        ("PATH", ("diff", "", EAGER)),
        ("PATH", ("check", EAGER, "")),
        ("--server-log", ("reconcile", EAGER, "--server-log=")),
        ("--trace", ("roofline", *MODEL, "--trace=")),
        ("--shapes-from", ("kernels", EAGER, "--shapes-from=")),
        ("--model", ("reconcile", EAGER, "--model=")),
        ("--output", ("inspect", EAGER, "-o", "")),
    ],
)
def test_empty_words_are_no_paths(refused, name, args):
    assert f"{name} is empty" in refused(*args)


@pytest.mark.parametrize("command", ["inspect", "serverlog"])
def test_a_name_longer_than_any_file(refused, command):
    assert "file name too long" in refused(command, "x" * 300)


@pytest.mark.parametrize("command", [("reconcile", EAGER), ("kernels", EAGER), ("roofline", *CARD)])
def test_a_model_longer_than_any_file(refused, command):
    assert "packaged" in refused(*command, "--model", "x" * 300, "--batch", "8", "--context", "512")

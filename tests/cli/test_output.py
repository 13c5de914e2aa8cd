"""Where reports go: stdout alone, a file whole or not at all, a pipe that closes."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import samples

from traceaudit.cli.output import page_of, write_file
from traceaudit.cli.progress import progress_line
from traceaudit.errors import TraceAuditError


@pytest.mark.usefixtures("calls")
def test_a_file_takes_the_report_and_stdout_stays_empty(run, tmp_path):
    target = tmp_path / "report.json"
    assert run("reconcile", "a.json", "-o", target, "--format", "json") == (0, "", "")
    assert json.loads(target.read_text())["command"] == "reconcile"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.json", "{"),
        ("r.md", "###"),
        ("r.csv", "rank,"),
        ("r.txt", "traceaudit"),
        ("r.LOG", "traceaudit"),
        ("r", "traceaudit"),
    ],
)
@pytest.mark.usefixtures("calls")
def test_the_ending_of_the_file_chooses_the_format(run, tmp_path, name, start):
    assert run("kernels", "a.json", "-o", tmp_path / name)[0] == 0
    assert (tmp_path / name).read_text().startswith(start)


@pytest.mark.usefixtures("calls")
def test_nothing_is_written_without_output(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("reconcile", "a.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("calls")
def test_dash_is_stdout(run):
    assert run("kernels", "a.json", "-o", "-")[1].startswith("traceaudit kernels")


def test_an_error_leaves_the_old_report(run, monkeypatch, tmp_path):
    target = tmp_path / "report.md"
    target.write_text("old")

    def audit(*_, **__):
        raise TraceAuditError("broken")

    monkeypatch.setattr("traceaudit.audit.reconcile", audit)
    assert run("reconcile", "a.json", "-o", target)[0] == 2
    assert target.read_text() == "old"


def test_a_failed_write_leaves_the_old_report(monkeypatch, tmp_path):
    target = tmp_path / "report.md"
    target.write_text("old")
    monkeypatch.setattr("pathlib.Path.replace", _full)
    with pytest.raises(TraceAuditError, match="cannot write the report"):
        write_file(str(target), "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def _full(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.usefixtures("calls")
def test_unwritable_targets_are_usage_errors(run, tmp_path):
    for target in (tmp_path, tmp_path / "no" / "such" / "folder.md"):
        code, out, err = run("reconcile", "a.json", "-o", target)
        assert (code, out) == (2, "")
        assert err.startswith("traceaudit: cannot write the report")


def test_a_link_and_its_target_stay_what_they_are(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_file(str(link), "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to():
    write_file(os.devnull, "gone")


class Stream(io.StringIO):
    def __init__(self, *, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "path", "env", "width", "color"),
    [
        (False, None, {}, 100, False),
        (False, None, {"COLUMNS": "110"}, 110, False),
        (False, None, {"COLUMNS": "500"}, 120, False),
        (False, None, {"COLUMNS": "20"}, 72, False),
        (True, None, {"COLUMNS": "90"}, 90, True),
        (True, None, {"COLUMNS": "90", "NO_COLOR": "1"}, 90, False),
        (True, None, {"COLUMNS": "90", "NO_COLOR": ""}, 90, True),
        (True, None, {"COLUMNS": "90", "TERM": "dumb"}, 90, False),
        (True, "file", {}, 100, False),
    ],
)
def test_pages(monkeypatch, terminal, path, env, width, color):
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    page = page_of(Stream(terminal=terminal), path)
    assert (page.width, page.color) == (width, color)


@pytest.mark.usefixtures("calls")
def test_an_ascii_terminal_gets_a_report(monkeypatch):
    from traceaudit.cli.main import main

    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        assert main(["reconcile", "a.json"]) == 0
        assert b"####" in raw.getvalue()


def test_progress_is_silent_without_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stderr", Stream(terminal=False))
    with progress_line(quiet=False) as report:
        assert report is None


def test_progress_waits_a_second_and_cleans_up(monkeypatch):
    stream = Stream(terminal=True)
    now = [time.monotonic()]
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with progress_line(quiet=False) as report:
        report(1_000_000, 4_000_000)
        assert stream.getvalue() == ""
        now[0] += 1.5
        report(2_000_000, 4_000_000)
        now[0] += 0.5
        report(3_000_000, None)
    assert stream.getvalue().startswith("\rtraceaudit: reading, 50 %, 2 MB\rtraceaudit: reading, 3 MB")
    assert stream.getvalue().endswith(" \r")
    with progress_line(quiet=True) as report:
        assert report is None


RUN = """
import sys; sys.path.insert(0, {tests!r})
import samples, traceaudit.audit as audit
audit.kernels = lambda path, options, *, progress=None: samples.kernel_report(*[samples.kernel_row()] * 20000)
from traceaudit.cli.main import main
sys.exit(main(["kernels", "a.json", "--format", "csv"]))
"""


def test_a_closed_pipe_is_quiet():
    code = RUN.format(tests=str(Path(samples.__file__).parent))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait() == 0
    assert err == b""

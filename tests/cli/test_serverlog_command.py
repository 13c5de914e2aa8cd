"""``traceaudit serverlog`` from the command line to the exit code."""

import json

import pytest
import serverlogs


@pytest.fixture
def log(tmp_path):
    lines = [serverlogs.decode(round(11.43 * n), 8, 28.0, queue=8) for n in range(6)]
    return serverlogs.write(tmp_path, *lines)


def test_a_mismatch_is_a_finding_and_no_failure(run, log):
    code, out, err = run("serverlog", log, "--expect-batch", "16", "--format", "json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["command"], document["expected"]) == ("serverlog", 16)
    assert document["findings"][0]["code"] == "batch_mismatch"


def test_strict_gates(run, log):
    code, out, err = run("serverlog", log, "--expect-batch", "16", "--strict")
    assert (code, err) == (3, "traceaudit: batch_mismatch, and --strict asks for more\n")
    assert "NOT 16" in out
    assert run("serverlog", log, "--expect-batch", "16", "--strict", "--quiet")[2] == ""
    assert run("serverlog", log, "--expect-batch", "8", "--strict")[0] == 0


def test_several_logs_and_a_file(run, log, tmp_path):
    more = serverlogs.write(tmp_path, serverlogs.decode(80, 8, 28.0), name="server.log.1.gz")
    target = tmp_path / "report.md"
    assert run("serverlog", log, more, "-o", target)[:2] == (0, "")
    assert target.read_text().startswith("### traceaudit serverlog: `2 files`")


def test_what_is_no_log(run, tmp_path):
    code, out, err = run("serverlog", serverlogs.write(tmp_path, "hello"))
    assert (code, out) == (2, "")
    assert "none of 1 lines tells the batch of a server" in err
    assert err.splitlines()[1].startswith("hint: expected lines such as")


@pytest.mark.parametrize(
    "args", [["--expect-batch", "0"], ["--load", "9"], ["--format", "csv"], ["--expect-batch", "x"]]
)
def test_options_that_mean_nothing(run, log, args):
    assert run("serverlog", log, *args)[0] == 2

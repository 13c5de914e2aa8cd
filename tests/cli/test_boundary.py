"""Exit codes and messages of the error boundary."""

import json

import pytest
import samples

from traceaudit.errors import InvariantError, MissingDataError, TraceFormatError


def raising(exc):
    def audit(*_, **__):
        raise exc

    return audit


@pytest.mark.usefixtures("calls")
def test_success_is_0_and_stderr_is_empty(run):
    code, out, err = run("reconcile", "a.json")
    assert (code, err) == (0, "")
    assert out.startswith("traceaudit reconcile")


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (TraceFormatError("not JSON", where="a.json, byte 3", hint="record again"), 2),
        (MissingDataError("no shapes"), 3),
        (InvariantError("parts"), 70),
    ],
)
def test_errors_of_the_package(run, monkeypatch, exc, code):
    monkeypatch.setattr("traceaudit.audit.reconcile", raising(exc))
    assert run("reconcile", "a.json") == (code, "", _message(exc))


def _message(exc):
    return f"traceaudit: {exc}\n" + (f"hint: {exc.hint}\n" if exc.hint else "")


def test_a_bug_is_reported_in_one_line(run, monkeypatch):
    monkeypatch.setattr("traceaudit.audit.reconcile", raising(KeyError("x")))
    code, out, err = run("reconcile", "a.json")
    assert (code, out) == (70, "")
    assert err == "traceaudit: internal error, please report it with the output of --debug: KeyError: 'x'\n"


def test_debug_shows_the_traceback(run, monkeypatch):
    monkeypatch.setattr("traceaudit.audit.reconcile", raising(KeyError("x")))
    code, _, err = run("reconcile", "a.json", "--debug")
    assert code == 70
    assert "Traceback (most recent call last)" in err


def test_interrupt_is_130(run, monkeypatch):
    monkeypatch.setattr("traceaudit.audit.reconcile", raising(KeyboardInterrupt()))
    code, out, err = run("reconcile", "a.json")
    assert (code, out) == (130, "")
    assert "Traceback" not in err


def test_messages_hold_nothing_that_a_terminal_obeys(run, monkeypatch):
    monkeypatch.setattr("traceaudit.audit.reconcile", raising(TraceFormatError(samples.NASTY, where=samples.NASTY)))
    _, _, err = run("reconcile", "a.json")
    assert "\x1b" not in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "args",
    [
        ["reconcile"],
        ["reconcile", "a.json", "--no-such-flag"],
        ["reconcile", "a.json", "--format", "yaml"],
        ["reconcile", "a.json", "--rank", "one"],
        ["no-such-command"],
        ["reconcile", "a.json", "--wall-ms", "fast"],
        ["reconcile", "a.json", "--wall-ms", "3", "--wall-total-ms", "4"],
        ["inspect", "a.json", "--format", "csv"],
        ["kernels", "a.json", "--step-annotation", "("],
    ],
)
def test_usage_errors_are_2(run, calls, args):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err
    assert calls == []


def test_a_typo_gets_a_suggestion(run):
    assert "reconcile" in run("reconcil")[2]


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["reconcile", "--help"], ["kernels", "-h"], ["inspect", "-h"]])
def test_help(run, args):
    code, out, err = run(*args)
    assert (code, err) == (0, "")
    assert "Usage: traceaudit" in out


def test_version(run):
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("traceaudit ")


@pytest.mark.usefixtures("calls")
def test_strict_prints_the_report_and_exits_3(run, monkeypatch):
    monkeypatch.setattr("traceaudit.audit.reconcile", lambda *_, **__: samples.unreliable())
    code, out, err = run("reconcile", "a.json", "--strict", "--format", "json")
    assert code == 3
    assert json.loads(out)["completeness"]["verdict"] == "unreliable"
    assert err == "traceaudit: the trace is unreliable, and --strict asks for more\n"
    assert run("reconcile", "a.json", "--strict", "--quiet")[2] == ""
    assert run("reconcile", "a.json")[0] == 0


@pytest.mark.usefixtures("calls")
def test_strict_accepts_a_partial_trace(run):
    assert run("inspect", "a.json", "--strict")[0] == 0

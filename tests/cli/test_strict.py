"""`--strict`, and the marks of numbers that a trace does not bear out, in every command and format."""

import csv
import io
import json
import re

import pytest
from renderers import render
from verdict.traces import decode, kernels, replays, without

from traceaudit.cli.main import COMMANDS
from traceaudit.report import formats_of

OF_TRACES = [command for command in ("reconcile", "kernels", "inspect", "gaps", "whatif") if command in COMMANDS]
CASES = [(command, form) for command in OF_TRACES for form in formats_of(command)]
SHARE = re.compile(r"\d %|\d%")


@pytest.fixture
def traces(tmp_path):
    """Write a complete, a partial and an unreliable trace."""
    broken = replays()
    trace = decode()
    made = {
        "complete": decode(),
        "partial": without(trace, kernels(trace, "b")[2]),
        "unreliable": without(broken, *[kernels(broken, name)[step] for name in "xyz" for step in (1, 3)]),
    }
    for verdict, one in made.items():
        (tmp_path / f"{verdict}.json").write_bytes(render(one))
    return tmp_path


@pytest.mark.parametrize(("command", "form"), CASES)
def test_strict_exits_with_3_when_unreliable_and_prints_all_the_same(run, traces, command, form):
    path = traces / "unreliable.json"
    plain = run(command, path, "--format", form)
    strict = run(command, path, "--format", form, "--strict")
    assert (plain[0], plain[2]) == (0, "")
    assert strict[0] == 3
    assert strict[1] == plain[1]
    assert "unreliable" in strict[2]
    assert run(command, path, "--format", form, "--strict", "--quiet")[2] == ""


@pytest.mark.parametrize("verdict", ["complete", "partial"])
@pytest.mark.parametrize("command", OF_TRACES)
def test_strict_lets_everything_else_pass(run, traces, command, verdict):
    code, _, err = run(command, traces / f"{verdict}.json", "--strict")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(("command", "form"), [case for case in CASES if case[1] in {"table", "markdown"}])
def test_an_unreliable_trace_shows_marks_and_no_bare_share(run, traces, command, form):
    """The message promises numbers marked `?`; no share of anything stands without one."""
    _, out, _ = run(command, traces / "unreliable.json", "--format", form)
    assert "numbers marked ?" in out
    body = out.split("Findings")[0] if command == "inspect" else out
    body = re.sub(r"(?m)^.*(?:error|warning|hint|numbers marked|^- ).*$", "", body)
    assert "?" in body
    bare = [line for line in body.splitlines() if re.search(r"\d(?: ?%)(?!\?)", line) and "100.0" not in line]
    assert not bare


@pytest.mark.parametrize(("command", "form"), [case for case in CASES if case[1] in {"table", "markdown"}])
def test_a_complete_trace_has_no_mark(run, traces, command, form):
    _, out, _ = run(command, traces / "complete.json", "--format", form)
    assert not re.search(r"\d ?%?\?", out)


@pytest.mark.parametrize("command", [command for command, form in CASES if form == "csv"])
@pytest.mark.parametrize("verdict", ["complete", "partial", "unreliable"])
def test_each_row_of_a_table_names_the_verdict(run, traces, command, verdict):
    _, out, _ = run(command, traces / f"{verdict}.json", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["verdict"] for row in rows} == {verdict}


@pytest.mark.parametrize("command", OF_TRACES)
def test_the_document_carries_the_verdict(run, traces, command):
    for verdict in ("complete", "partial", "unreliable"):
        _, out, _ = run(command, traces / f"{verdict}.json", "--format", "json")
        assert json.loads(out)["completeness"]["verdict"] == verdict


def test_the_document_names_the_doubtful_numbers(run, traces):
    """A lost copy makes busy and idle doubtful, and all that idle is made of."""
    _, out, _ = run("reconcile", traces / "partial.json", "--format", "json")
    (device,) = json.loads(out)["devices"]
    assert {"busy_ns", "idle_ns", "idle_host", "idle_latency"} <= set(device["doubtful"])
    _, out, _ = run("reconcile", traces / "complete.json", "--format", "json")
    assert json.loads(out)["devices"][0]["doubtful"] == []

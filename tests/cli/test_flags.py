"""Every flag reaches the options."""

import json

import pytest


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("command", ["reconcile", "kernels", "inspect"])
def test_stdout_is_one_json_document(run, command):
    code, out, err = run(command, "a.json", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["command"] == command


@pytest.mark.parametrize("command", ["reconcile", "kernels", "inspect"])
def test_selection_and_steps(run, calls, command):
    run(command, "dir", "--rank", "1", "--device", "2", "--step", "3", "--step-annotation", "dec.*")
    ((name, path, options),) = calls
    assert (name, path) == (command, "dir")
    options = getattr(options, "base", options)
    assert (options.selection.rank, options.selection.device, options.selection.step) == (1, 2, 3)
    assert options.steps.annotation.pattern == "dec.*"
    run(command, "-", "--steps", "8")
    assert calls[1][1] == "-"
    assert getattr(calls[1][2], "base", calls[1][2]).steps.divide_by == 8


@pytest.mark.parametrize(
    ("flags", "step_ns"),
    [
        (["--wall-ms", "3.3"], 3_300_000),
        (["--wall-total-ms", "330", "--wall-steps", "100"], 3_300_000),
        (["--tokens-per-second", "28", "--concurrency", "16"], 571_428_571),
        (["--tokens-per-second", "80", "--concurrency", "16", "--accept-length", "2.5"], 500_000_000),
    ],
)
def test_walls(run, calls, flags, step_ns):
    assert run("reconcile", "a.json", *flags)[0] == 0
    assert calls[0][2].wall.step_ns == step_ns


def test_scheduler(run, calls):
    run("reconcile", "a.json", "--scheduler", "my_loop")
    assert calls[0][2].scheduler.pattern == "my_loop"


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("args", "start"),
    [
        (["--format", "markdown"], "### traceaudit kernels"),
        (["-f", "csv"], "rank,device,name"),
        (["-f", "table"], "traceaudit kernels"),
        ([], "traceaudit kernels"),
    ],
)
def test_formats(run, args, start):
    assert run("kernels", "a.json", *args)[1].startswith(start)

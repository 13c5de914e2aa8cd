"""What fuzzing found, each as the smallest input that shows it."""

from random import Random

import pytest
from fuzz.engine import outcome_of
from fuzz.oracle import run
from renderers import document, dump, render
from verdict.traces import decode, kernels, replays, without

from traceaudit.model.results import Reconciliation


def report_of(data: bytes) -> Reconciliation:
    """Return the report on an input that is no refusal."""
    report = run(data).report
    assert report is not None
    return report


def found_in(data: bytes) -> dict[str, str]:
    """Return the severity of each finding's code."""
    return {finding.code: finding.severity.value for finding in report_of(data).completeness.findings}


def test_rows_without_category_whose_times_are_large_decimals():
    """Times since 1970 as decimals, in the rows of PyTorch's first profiler: they are converted once all rows are seen,
    when the text that a float64 cannot stand for is gone. Was: ``zip() argument 2 is shorter``.
    """
    row = '{"name":"k","ph":"X","ts":%d.5,"dur":2.5,"tid":0,"pid":"CUDA functions","args":{}}'
    data = "[" + ",".join(row % (1_767_225_600_000_000 + 10 * number) for number in range(3)) + "]"
    (device,) = report_of(data.encode()).devices
    assert (device.totals.device_ops, device.totals.op_time_ns) == (3, 7_500)


def test_ranks_beyond_32_bits():
    """Tags of merged ranks so large that pipeline stage times tensor ranks overflows. Was: ``OverflowError``."""
    data = render(decode()).replace(b'"pid": 0,', b'"pid": "[TP999999-PP999999] 0",')
    (device,) = report_of(data).devices
    assert (device.rank, device.totals.device_ops) == (0, 10)


def test_many_ranks_are_numbered_in_one_pass():
    """30,000 tags took minutes, since each looked at all others; now they are refused at once as too many devices."""
    row = '{"ph":"X","cat":"kernel","name":"k","pid":"[TP%05d] 0","tid":7,"ts":%d.5,"dur":1.000}'
    data = '{"traceEvents":[' + ",".join(row % (number, number) for number in range(30_000)) + "]}"
    assert "device ops of 30000 devices" in run(data.encode()).refusal


def test_a_repair_that_swallows_a_category():
    """A stray backslash between two strings; quotes are escaped up to the next key, so that the category is no category
    any more, and the op would go without a word: one row of 67.
    """
    data = render(decode()).replace(b'"cat": "kernel", \n ', b'"cat": "kernel", \n\\', 1)
    assert found_in(data)["rows_dropped"] == "warning"


def test_a_repair_that_swallows_the_next_row():
    """Two rows become one string: the second counts as dropped."""
    data = render(decode(), "compact")
    place = data.index(b'"name": "ac2g"')
    end = data.index(b'"name": "a"', place) if b'"name": "a"' in data[place:] else data.index(b'"a"', place)
    assert found_in(data[: place + 9] + data[end:])


def test_replays_that_each_lost_another_row():
    """Each of five replays of graph 3 lacks one op, none is whole: what they hold together is due in each. 5 x 200 of
    2100 µs.
    """
    trace = replays(graph_id=3)
    lost = [kernels(trace, "xyz"[step % 3])[step] for step in range(5)]
    report = report_of(render(without(trace, *lost)))
    (finding,) = [one for one in report.completeness.findings if one.code == "graph_replay_uneven"]
    assert (finding.severity, finding.count, finding.impact_ns) == ("error", 5, 1_000_000)


@pytest.mark.parametrize("steps", [4, 5, 8])
@pytest.mark.parametrize("which", [0, 1, 2, -1])
def test_one_damaged_replay_among_few_without_ids_or_markers(steps, which):
    """The order of so few replays did not count as one that repeats, so the damage went unseen."""
    trace = replays(steps, markers=False)
    data = render(without(trace, kernels(trace, "y")[which]))
    piece = steps == 8 and which == -1  # the last of eight equal ones may be the last piece of a model cut in pieces
    assert ("graph_replay_uneven" in found_in(data)) == (not piece)


def test_the_tail_of_a_capture():
    """Calls at the end without ops were left out of `launch_without_op`, and mentioned nowhere."""
    trace = decode()
    data = render(without(trace, kernels(trace, "a")[-1], kernels(trace, "b")[-1]))
    assert found_in(data)["capture_edge_loss"] == "error"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("distributedInfo", {"rank": 0, "world_size": 10**12}),
        ("distributedInfo", {"rank": 0, "world_size": -5}),
        ("distributedInfo", {"rank": "9" * 5000, "world_size": "9" * 5000}),
        ("traceaudit", {"schema_version": 1, "wall_ns_per_step": [1e308]}),
        ("traceaudit", {"schema_version": 1, "wall_ns_per_step": [5e-324]}),
        ("deviceProperties", [{"id": "9" * 5000, "name": "x", "numSms": 10**18}]),
        ("baseTimeNanoseconds", 10**30),
    ],
)
def test_numbers_beyond_all_reason_around_the_events(key, value):
    """10^12 ranks of which to list the absent; a wall of 0; a device of more digits than Python converts."""
    made = document(decode(), "compact")
    made.head[key] = value
    assert not found_in(dump(made).encode())


@pytest.mark.parametrize(
    "name",
    ["ProfilerStep#{}", "step[decode bs={}]", "step[decode bs=5 toks={}]", "execute_context_0(0)_generation_{}({})"],
)
def test_numbers_beyond_all_reason_in_markers(name):
    """Python converts no more than 4300 digits."""
    trace = decode()
    for row in trace.host:
        if row.name.startswith("ProfilerStep"):
            row.name = name.replace("{}", "9" * 5000)
    assert report_of(render(trace)).devices[0].totals.device_ops == 10


def test_ops_of_an_unknown_category():
    """Five steps of a kernel and a copy: without any kernel the steps are even, but the rows are still in the file."""
    made = document(decode(), "compact")
    for row in made.events:
        if isinstance(row, dict) and row.get("cat") == "kernel":
            row["cat"] = "kernal"
    report = report_of(dump(made).encode())
    found = [finding for finding in report.completeness.findings if finding.code == "rows_dropped"]
    assert [(finding.count, finding.severity.value) for finding in found] == [(5, "error")]
    assert report.devices[0].totals.device_ops == 5


def test_inputs_that_failed_once():
    """Kinds and seeds of the recorded runs."""
    for kind, seed in (
        ("fields: device rows of unknown categories", 1_000_082),
        ("fields: device rows of unknown categories", 1062),
        ("fields: device rows of unknown categories", 1985),
        ("fields: device rows of unknown categories", 3328),
        ("bytes: bytes replaced", 2593),
        ("bytes: bytes replaced", 3021),
        ("compressed: gzip", 3111),
        ("several: rows, fields and bytes", 1519),
        ("bytes: bytes replaced", 2_000_022),
        ("compressed: zstd", 2_000_082),
    ):
        outcome_of(kind, Random(f"{kind} {seed}"))

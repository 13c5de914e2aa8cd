import dataclasses

import pytest
from builders import TraceBuilder
from comparisons import BASELINE, trace_bytes
from renderers import render

from traceaudit.analyses.reconcile import reconcile
from traceaudit.errors import MissingDataError
from traceaudit.ingest import read
from traceaudit.model.deviceview import device_views
from traceaudit.model.findings import Verdict
from traceaudit.model.options import ReconcileOptions, Selection, StepOptions
from traceaudit.model.sampling import summarise


@pytest.fixture
def summary(tmp_path):
    """Summarise a trace given as bytes or as a builder."""

    def call(trace, steps=None):
        path = tmp_path / "run.json"
        path.write_bytes(render(trace, "kineto-2.12") if isinstance(trace, TraceBuilder) else trace)
        options = steps or StepOptions()
        view = next(device_views(read(str(path)), options, Selection()))
        return summarise(view, reconcile(view, ReconcileOptions(steps=options), None), verdict=Verdict.COMPLETE)

    return call


def test_times_are_sums_by_kernel_and_step(summary):
    run = summary(trace_bytes(BASELINE))
    assert {kernel.name: kernel.step_ns for kernel in run.kernels} == {
        name: tuple(round(us * 1000) for us in times) for name, times in BASELINE.items()
    }
    assert all(kernel.step_launches == (1,) * 5 for kernel in run.kernels)
    assert [run.kernels[row].name for row in run.sequence] == list(BASELINE)
    assert run.busy_ns == tuple(round(1000 * sum(times)) for times in zip(*BASELINE.values(), strict=True))
    assert run.steps == 5


def test_launches_of_one_step_are_summed_and_their_spread_is_kept(summary):
    trace = TraceBuilder()
    for step in range(3):
        trace.annotation(f"ProfilerStep#{step}", at=100 * step, dur=100)
        launch = trace.graph_launch(at=100 * step)
        for number, dur in enumerate((4, 6)):
            launch.kernel("gemm", at=100 * step + 10 + 10 * number, dur=dur, grid=[4, 1, 1], block=[32, 1, 1])
    (kernel,) = summary(trace).kernels
    assert kernel.step_ns == (10_000,) * 3
    assert kernel.step_launches == (2,) * 3
    assert kernel.launch_sd_ns == pytest.approx(2**0.5 * 1000)  # 1 µs from the mean on either side
    assert kernel.shape.grid == (4, 1, 1)


@pytest.mark.parametrize(("graph", "mode"), [(True, "graph"), (False, "eager")])
def test_the_graph_mode_is_how_ops_were_launched(summary, graph, mode):
    assert summary(trace_bytes(BASELINE, graph=graph)).facts.graph_mode == mode


def test_ops_without_launch_rows_leave_the_graph_mode_open(summary):
    trace = TraceBuilder()
    for step in range(3):
        trace.orphan().kernel("gemm", at=100 * step, dur=10)
    assert summary(trace, StepOptions(divide_by=3)).facts.graph_mode is None


def test_batch_and_kind_come_from_the_markers(summary):
    facts = summary(trace_bytes(BASELINE, batch=16)).facts
    assert (facts.batch, facts.step_kind, facts.device) == (16, "decode", "NVIDIA H200")


def test_the_data_type_is_that_of_most_named_time(summary):
    kernels = {"gemm_bf16": (50.0,) * 3, "cast<__half>": (5.0,) * 3, "plain": (20.0,) * 3}
    assert summary(trace_bytes(kernels)).facts.dtype == "bf16"
    assert summary(trace_bytes({"gemm_bf16": (5.0,) * 3, "plain": (80.0,) * 3})).facts.dtype is None
    assert summary(trace_bytes({"a_bf16": (9.0,) * 3, "b_e4m3": (9.0,) * 3})).facts.dtype is None
    assert summary(trace_bytes({"plain": (9.0,) * 3})).facts.dtype is None


def test_steps_of_other_kinds_are_left_out(summary):
    trace = TraceBuilder()
    for step, mode in enumerate(("DECODE", "DECODE", "EXTEND", "DECODE", "DECODE")):
        trace.annotation(f"step[{mode} bs=4]", at=100 * step, dur=100)
        trace.launch(at=100 * step).kernel("gemm", at=100 * step + 10, dur=80 if mode == "EXTEND" else 20)
    run = summary(trace)
    assert set(run.kernels[0].step_ns) == {20_000}
    assert run.facts.step_kind == "decode"


def test_a_divided_trace_is_one_mean_step(summary):
    run = summary(trace_bytes(BASELINE), StepOptions(divide_by=5))
    first = next(iter(BASELINE))
    assert run.steps == 1
    assert {kernel.name: kernel.step_ns for kernel in run.kernels}[first] == (412_340.0,)


def test_names_of_one_identity_are_one_kernel_called_by_the_longest(summary):
    trace = TraceBuilder()
    for step in range(3):
        trace.annotation(f"ProfilerStep#{step}", at=100 * step, dur=100)
        launch = trace.graph_launch(at=100 * step)
        launch.kernel(f"triton_poi_fused_add_{step % 2}", at=100 * step + 10, dur=4 + step % 2 * 8)
    (kernel,) = summary(trace).kernels
    assert (kernel.name, kernel.key[0]) == ("triton_poi_fused_add_1", "triton_poi_fused_add")


def test_numbers_of_one_step_are_kernels_of_their_own_in_order_of_launch(summary):
    """`_7` is launched first, twice a step; `_6` is another kernel, though the names differ in nothing else."""
    trace = TraceBuilder()
    for step in range(3):
        trace.annotation(f"ProfilerStep#{step}", at=100 * step, dur=100)
        launch = trace.graph_launch(at=100 * step)
        for place, (number, dur) in enumerate([(7, 4), (6, 9), (7, 5)]):
            launch.kernel(f"triton_poi_fused_add_{number}", at=100 * step + 10 + 10 * place, dur=dur)
    run = summary(trace)
    assert [(kernel.key[0], kernel.name, kernel.step_ns[0]) for kernel in run.kernels] == [
        ("triton_poi_fused_add#1", "triton_poi_fused_add_7", 9000),
        ("triton_poi_fused_add#2", "triton_poi_fused_add_6", 9000),
    ]
    assert [kernel.step_launches[0] for kernel in run.kernels] == [2, 1]


def test_steps_without_ops_cannot_be_compared(summary):
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#0", at=0, dur=100)
    trace.orphan().kernel("gemm", at=10, dur=10)
    with pytest.raises(MissingDataError, match="no step with device ops"):
        summary(trace)


def test_halves_of_characters_in_names_become_text(tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(trace_bytes({"broken": (9.0,) * 3}))
    trace = read(str(path))
    trace = dataclasses.replace(trace, names=tuple(name.replace("broken", "bro\udc80ken") for name in trace.names))
    view = next(device_views(trace, StepOptions(), Selection()))
    run = summarise(view, reconcile(view, ReconcileOptions(), None), verdict=Verdict.COMPLETE)
    assert [kernel.name for kernel in run.kernels] == ["bro\\udc80ken"]

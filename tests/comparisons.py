"""Runs and traces for the tests of `diff` and `check`, with every time chosen by hand."""

from builders import TraceBuilder
from renderers import render

from traceaudit.model.findings import Verdict
from traceaudit.model.identity import identity_of, placed, shape_class
from traceaudit.model.launchshape import LaunchShape
from traceaudit.model.runs import KernelSamples, RunFacts, RunSummary, Side

US = 1000
ACCOUNTS = ("compute", "exposed_comm", "exposed_copy", "idle_graph", "idle_latency", "idle_host", "idle_unknown")
SPREAD = (0.0, 0.001, -0.001, 0.0005, -0.0005)
"""Relative distance of five steps from their median: a range of 0.2 %."""

BASELINE = {
    "nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT": (412.0, 413.1, 411.8, 412.6, 412.2),
    "void flash::flash_fwd_splitkv_kernel<Traits<128> >(Params)": (88.2, 88.9, 88.1, 88.6, 88.4),
    "void flashinfer::norm::FusedAddRMSNormKernel<8u>(float)": (6.1, 6.3, 6.0, 6.2, 6.1),
    "void flashinfer::activation::act_and_mul_kernel<float>(float*)": (9.8, 9.7, 9.9, 9.8, 10.0),
    "void at::native::vectorized_elementwise_kernel<4, FillFunctor<long> >(int)": (2.1, 2.0, 2.1, 2.2, 2.1),
}
"""µs of each kernel in five steps: medians 412.2, 88.4, 6.1, 9.8 and 2.1, 518.8 for the step."""

RERUN = dict(
    zip(
        BASELINE,
        (
            (413.0, 412.4, 412.9, 411.9, 413.3),
            (89.1, 88.5, 88.8, 88.2, 89.0),
            (6.2, 6.4, 6.1, 6.3, 6.3),
            (9.9, 9.8, 9.7, 9.8, 9.9),
            (2.3, 2.3, 2.2, 2.4, 2.3),
        ),
        strict=True,
    )
)
"""The same code: +0.17, +0.45, +3.3, 0 and +9.5 %, the last of which are 0.2 µs of 519."""

REGRESSED = {**BASELINE, "nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT": (437.2, 436.5, 436.9, 437.4, 436.8)}
"""The first kernel takes 24.7 µs (6 %) longer."""


def trace_bytes(kernels, *, batch=None, device="NVIDIA H200", graph=False, names=lambda name: name):
    """Return a trace with a ProfilerStep of 600 µs for each step; 10 µs after it began, one kernel follows another."""
    trace = TraceBuilder(device=device)
    for step in range(len(next(iter(kernels.values())))):
        start = 600 * step
        marker = f"ProfilerStep#{step}" if batch is None else f"step[DECODE bs={batch}]"
        trace.annotation(marker, at=start, dur=600)
        at = start + 10.0
        launch = trace.graph_launch(at=start + 2, dur=4) if graph else None
        for name, times in kernels.items():
            call = launch or trace.launch(at=round(at - 8, 3), dur=4)
            call.kernel(names(name), at=round(at, 3), dur=times[step], grid=[132, 1, 1], block=[128, 1, 1])
            at += times[step]
    return render(trace, "kineto-2.12")


def kernel(name, us, *, launches=1, blocks=132, kind="compute", steps=5, spread=SPREAD, sd=None, place=None, **shape):
    """A kernel of `us` µs a step, give or take `spread`; with a place among those that only a number tells apart."""
    distances = [spread[step % len(spread)] for step in range(steps)]
    return KernelSamples(
        key=(identity_of(name) if place is None else placed(identity_of(name), place), shape_class(blocks)),
        name=name,
        kind=kind,
        step_ns=tuple(us * US * (1 + distance) for distance in distances),
        step_launches=(float(launches),) * steps,
        launch_sd_ns=sd,
        shape=LaunchShape(**{"grid": (blocks, 1, 1), "block": (128, 1, 1), **shape}),
    )


def run(
    *kernels, sequence=None, source="run.json", idle_us=10.0, wall_us=(), rank=0, verdict=Verdict.COMPLETE, **facts
):
    """A run of these kernels; the device idles `idle_us` in each step, in the graph."""
    busy = [sum(times) for times in zip(*(item.step_ns for item in kernels), strict=True)]
    idle = idle_us * US
    accounts = {name: (0.0,) * len(busy) for name in ACCOUNTS} | {
        "compute": tuple(busy),
        "idle_graph": (idle,) * len(busy),
    }
    order = (
        sequence if sequence is not None else [item.name for item in kernels for _ in range(int(item.step_launches[0]))]
    )
    rows = {item.name: number for number, item in enumerate(kernels)}
    return RunSummary(
        source=source,
        rank=rank,
        device=0,
        facts=RunFacts(**{"device": "NVIDIA H200", "capability": (9, 0), "sms": 132, **facts}),
        step_source="profiler_step",
        window_ns=tuple(time + idle for time in busy),
        busy_ns=tuple(busy),
        accounts=accounts,
        wall_ns=tuple(round(value * US) for value in wall_us),
        resolution_ns=1,
        kernels=tuple(kernels),
        sequence=tuple(rows[name] for name in order),
        verdict=verdict,
    )


def side(*runs, label="side"):
    return Side.of(label, runs)


def decode(scale=1.0, *, factor=1.0, kernels=8, **options):
    """A run of kernels of 100 µs and two small ones; the first takes `scale` times as long, all take `factor` times."""
    large = [kernel(f"gemm_{number}_kernel", 100 * factor * (scale if number == 0 else 1)) for number in range(kernels)]
    small = [kernel("norm_kernel", 20 * factor, launches=12), kernel("fill_kernel", 2 * factor)]
    return run(*large, *small, **options)

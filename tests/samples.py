"""Results built by hand, for the tests of renderers and of the command line."""

from dataclasses import replace

from traceaudit.model.findings import Finding, Severity
from traceaudit.model.results import (
    Accounts,
    Completeness,
    DeviceAudit,
    DeviceInventory,
    DeviceKernels,
    HostTimes,
    IdleLatency,
    IdlePosition,
    Inspection,
    KernelReport,
    KernelRow,
    LaunchCoverage,
    Ledger,
    Reconciliation,
    StepItem,
    StepKind,
    StepMean,
    Steps,
    StepSource,
    Totals,
)
from traceaudit.model.results.kernels import Ceilings, KernelRates
from traceaudit.model.trace import TraceSource

MS = 1_000_000

NASTY = "\x1b[31mred\x1b[0m [red]x[/red] <script>alert(1)</script>\r\n| a | `b` \u202e \x9b2J =1+1 @team"


def source(path="decode.json.gz", **changes):
    values = {
        "path": path,
        "events": 12_345,
        "bytes_read": 4_567_890,
        "writer": "Kineto, torch 2.9.0",
        "time_resolution_ns": 1,
        "origin_ns": 1_767_225_600_000_000_000,
        "categories": {("kernel", "X"): 512, ("cuda_runtime", "X"): 900, ("ac2g", "s"): 512, ("", "M"): 12},
        "versions": {"schemaVersion": "1", "cuda_runtime_version": "12080"},
        "capture_ns": (0, 25 * MS),
    }
    return TraceSource(**(values | changes))


def step_item(index, window, compute, *, comm=0, copy=0, graph=0, latency=0, unknown=0, **changes):
    """A step; idle_host is what the other accounts leave of the window."""
    host = window - compute - comm - copy - graph - latency - unknown
    accounts = Accounts(compute, comm, copy, graph, latency, host, unknown)
    values = {
        "index": index,
        "name": f"ProfilerStep#{index + 2}",
        "kind": StepKind.DECODE,
        "batch": 16,
        "tokens": 16,
        "start_ns": index * window,
        "window_ns": window,
        "device_ops": 301,
        "op_time_ns": compute + comm + copy,
        "own_busy_ns": compute + comm + copy,
        "accounts": accounts,
        "left_out": None,
    }
    return StepItem(**(values | changes))


def audit(items, *, wall_ns=None, latency_by=None, host_by=None, host=None, doubtful=(), error_ns=0, **changes):
    """A device whose ledger sums the used items; causes default to `unrecorded` and `launch_call`."""
    used = [item for item in items if item.used]
    accounts = Accounts()
    for item in used:
        accounts = accounts.plus(item.accounts)
    count, window = len(used), accounts.total()
    ledger = Ledger(
        steps=count,
        window_ns=window,
        wall_ns=None if wall_ns is None else wall_ns * count,
        accounts=accounts,
        idle_latency_by=latency_by or IdleLatency(launch_call=accounts.idle_latency),
        idle_host_by=host_by if host_by is not None else {"unrecorded": accounts.idle_host},
        idle_by_position=IdlePosition(between=accounts.idle),
    )
    mean, busy = window / count, accounts.busy / count
    step = StepMean(
        wall_ns=wall_ns,
        wall_source=None if wall_ns is None else f"--wall-ms {wall_ns / MS:g}",
        window_ns=mean,
        busy_ns=busy,
        idle_ns=accounts.idle / count,
        residual_ns=None if wall_ns is None else wall_ns - mean,
        dilation=mean / wall_ns if wall_ns and mean > wall_ns else None,
        full_speed_idle_ns=wall_ns - busy if wall_ns and busy <= wall_ns else None,
    )
    values = {
        "rank": 0,
        "device": 0,
        "name": "NVIDIA H200",
        "totals": Totals(device_ops=602, op_time_ns=accounts.busy, busy_ns=accounts.busy, span_ns=window, gaps=40),
        "steps": Steps(StepSource.PROFILER_STEP, f"{len(items)} annotations", tuple(items)),
        "ledger": ledger,
        "host": host or HostTimes(0, 0, 0, 0, 0, {}),
        "step": step,
        "resolution_error_ns": error_ns,
        "doubtful": frozenset(doubtful),
    }
    return DeviceAudit(**(values | changes))


def reconciliation(*devices, findings=(), path="decode.json.gz"):
    return Reconciliation((source(path),), path, Completeness.of(tuple(findings)), devices)


def graph_decode():
    """A clean graph decode with a scheduler between the steps, wall 10 µs above the window."""
    items = [
        step_item(
            0, 4 * MS, 3 * MS, graph=100_000, latency=50_000, left_out="window 12.1 % off the median of the others"
        ),
        step_item(1, 3_560_000, 3 * MS, graph=110_000, latency=50_000),
        step_item(2, 3_580_000, 3 * MS, graph=120_000, latency=60_000),
    ]
    host_by = {
        "annotation:schedule": 500_000,
        "python:scheduler.py:schedule": 160_000,
        "framework": 30_000,
        "unrecorded": 10_000,
    }
    device = audit(
        items,
        wall_ns=3_580_000,
        latency_by=IdleLatency(launch_call=90_000, delivery=15_000, turnaround=5_000),
        host_by={**host_by, "sync": 100_000},
        host=HostTimes(
            700_000, 660_000, 90_000, 5_000_000, 400_000, {"annotation:schedule": 500_000, "schedule": 200_000}
        ),
    )
    return reconciliation(device)


def eager_dilated():
    """Eager decode: 12 ms profiled, 3.3 ms of wall, 1.02 ms busy."""
    items = [step_item(i, 12 * MS, 1_020_000, latency=6 * MS) for i in range(8)]
    host_by = {"framework": 30 * MS, "python:decoder.py:forward": 5 * MS, "unrecorded": 4_840_000}
    device = audit(
        items,
        wall_ns=3_300_000,
        latency_by=IdleLatency(launch_call=44 * MS, delivery=3 * MS, turnaround=1 * MS),
        host_by=host_by,
        host=HostTimes(0, 0, 50 * MS, 1 * MS, 0, {}),
    )
    findings = [
        Finding(
            "profiler_dilation",
            Severity.WARNING,
            "the profiled step takes 12.0 ms, the wall clock says 3.30 ms",
            hint="busy stays as measured; record without Python stacks and shapes to dilate less",
            impact_ns=8_700_000,
            rank=0,
            device=0,
        ),
        Finding("ops_outside_steps", Severity.INFO, "3 ops belong to no step", count=3, impact_ns=4_000),
    ]
    return reconciliation(device, findings=findings)


def unreliable():
    """Graph replays without rows: 24 % busy, 76 % idle, neither to be believed."""
    items = [step_item(i, 10 * MS, 9_300_000 if i in (2, 6) else 100_000, batch=64) for i in range(8)]
    items = [replace(item, name=f"step[DECODE bs={item.batch}]") for item in items]
    findings = [
        Finding(
            "graph_replay_uneven",
            Severity.ERROR,
            "6 of 8 launches of one graph have no rows",
            hint="record again with a larger activity buffer",
            count=6,
            impact_ns=55_200_000,
            examples=("cudaGraphLaunch at 10.0 ms: 0 ops, siblings 5",),
        ),
        Finding("launch_without_op", Severity.WARNING, "6 calls of cudaGraphLaunch have no device op", count=6),
    ]
    return reconciliation(audit(items, doubtful={"busy_ns", "idle_ns"}), findings=findings)


def wall_below_busy():
    """A wall shorter than busy: another run."""
    finding = Finding(
        "wall_below_busy", Severity.WARNING, "busy 3.00 ms is above the wall 1.50 ms", impact_ns=1_500_000
    )
    items = [step_item(i, 3_500_000, 3 * MS) for i in range(2)]
    return reconciliation(audit(items, wall_ns=1_500_000), findings=[finding])


def ranks():
    """Four ranks, the last of which waits in communication."""
    devices = [
        audit([step_item(i, (5 + rank) * MS, 3 * MS, comm=rank * MS, name=None) for i in range(20)], rank=rank)
        for rank in range(4)
    ]
    return reconciliation(
        *devices, findings=[Finding("rank_skew", Severity.INFO, "rank 3 is late", rank=3)], path="ranks/"
    )


def coarse():
    """Whole-µs times without a wall."""
    finding = Finding("coarse_timestamps", Severity.INFO, "times are whole µs: ±1.00 µs a row")
    return reconciliation(audit([step_item(0, 800_000, 500_000)], error_ns=4_000), findings=[finding])


def nasty():
    """Every text that a trace or a user controls is hostile."""
    items = [step_item(0, 3 * MS, MS, name=NASTY, left_out=None), step_item(1, 3 * MS, MS, name=NASTY, left_out=NASTY)]
    device = audit(
        items,
        wall_ns=4 * MS,
        host_by={f"annotation:{NASTY}": 2 * MS},
        host=HostTimes(MS, MS, 0, 0, 0, {NASTY: MS}),
        name=NASTY,
    )
    device = replace(
        device,
        step=replace(device.step, wall_source=NASTY),
        steps=Steps(StepSource.ANNOTATION, NASTY, tuple(items)),
    )
    findings = [Finding("clock_skew", Severity.WARNING, NASTY, hint=NASTY, examples=(NASTY,))]
    return reconciliation(device, findings=findings, path=NASTY)


def kernel_row(name="void gemm<bf16>(Params)", launches=10, op_time_ns=900_000, **changes):
    values = {
        "name": name,
        "kind": "compute",
        "rule": "any other kernel",
        "launches": launches,
        "op_time_ns": op_time_ns,
        "share_of_op_time_frac": 0.75,
        "mean_ns": op_time_ns / launches,
        "min_ns": 80_000,
        "p50_ns": 90_000.0,
        "max_ns": 100_000,
        "grid": (132, 1, 1),
        "block": (256, 1, 1),
        "blocks_per_sm": 1.0,
        "flags": (),
    }
    return KernelRow(**(values | changes))


def kernel_report(*rows, path="decode.json.gz", findings=(), name="NVIDIA H200"):
    rows = rows or (
        kernel_row(),
        kernel_row("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 4, 200_000, kind="comm", share_of_op_time_frac=1 / 6),
        kernel_row(
            "Memcpy HtoD (Pinned -> Device)",
            2,
            100_000,
            kind="memcpy",
            share_of_op_time_frac=1 / 12,
            grid=None,
            block=None,
            blocks_per_sm=None,
            flags=("cache_resident",),
        ),
    )
    total = sum(row.op_time_ns for row in rows)
    device = DeviceKernels(rank=0, device=0, name=name, op_time_ns=total, busy_ns=total, kernels=tuple(rows))
    return KernelReport((source(path),), path, Completeness.of(tuple(findings)), (device,))


def rated_kernels():
    """Kernels with rates: one from memory, one above peak, one starved, one out of cache."""
    rows = (
        kernel_row(
            "nvjet_sm90_tst_128x16_64x11_4x1_v_bz_TNT",
            60,
            813_436,
            share_of_op_time_frac=0.5,
            op="aten::mm",
            role="gate_up",
            rates=KernelRates(
                2_793_799_680,
                "shape",
                "",
                60,
                3434.6,
                0.7155,
                44_291_850_240,
                54.5,
                0.055,
                15.85,
                9_700.7,
                0.7155,
                "dram",
            ),
            bound="memory",
            bound_rule="its bytes explain 72% of the time, 25% or more",
            save_ns=13_000.0,
            launches_per_step=12.0,
            per_step_ns=162_687.2,
        ),
        kernel_row(
            "fused_moe_kernel",
            1,
            400_000,
            share_of_op_time_frac=0.25,
            rates=KernelRates(11_274_289_152, "spec", "bytes.toml, line 1", 1, 6970.0, 1.452, sol_frac=1.452),
            bound="memory",
            flags=("over_peak",),
        ),
        kernel_row(
            "starved_attention_kernel",
            3,
            300_000,
            share_of_op_time_frac=0.2,
            grid=(64, 1, 1),
            rates=KernelRates(103_809_024, "model", "as given", 3, 9.8, 0.002, sol_frac=0.002, memory_level="dram"),
            bound="latency",
            flags=("underfilled_grid", "impossible_overlap"),
        ),
        kernel_row(
            "void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float, true>(int)",
            25,
            83_000,
            share_of_op_time_frac=0.05,
            short_name="vectorized_layer_norm_kernel",
            rates=KernelRates(3_380_800, "shape", "", 25, 40.7, 0.008, sol_frac=0.008, memory_level="l2"),
            bound="launch",
        ),
    )
    report = kernel_report(*rows)
    device = replace(
        report.devices[0],
        ceilings=Ceilings(4800.0, "H200 SXM 141 GB, high confidence: H200 datasheet", None, l2_bytes=60_000_000),
        covered_busy_frac=0.987,
        sources=(("shape", 900_000), ("spec", 400_000), ("none", 12_000)),
        steps=5,
        notes=("shapes from eager.json.gz: 1,395 of 1,401 kernels have their like there",),
    )
    return replace(report, devices=(device,))


def nasty_kernels():
    finding = Finding("clock_skew", Severity.WARNING, NASTY, hint=NASTY, examples=(NASTY,))
    return kernel_report(kernel_row(NASTY, rule=NASTY, kind="compute"), path=NASTY, findings=[finding], name=NASTY)


def inspection(path="decode.json.gz", findings=(), api="cudaLaunchKernel", **changes):
    device = DeviceInventory(
        rank=0,
        device=0,
        name=changes.pop("name", "NVIDIA H200"),
        streams=2,
        ops_by_kind={"compute": 500, "memcpy": 12},
        totals=Totals(device_ops=512, op_time_ns=9_000_000, busy_ns=8_900_000, span_ns=24_000_000, gaps=480),
        step_source=StepSource.PROFILER_STEP,
        step_reason=changes.pop("reason", "8 annotations"),
        steps=8,
    )
    coverage = (
        LaunchCoverage(0, api, 490, 489, 489, 8_700_000),
        LaunchCoverage(0, "cudaMemcpyAsync", 12, 12, 12, 200_000),
        LaunchCoverage(0, None, 0, 0, 11, 100_000),
    )
    return Inspection((source(path, **changes),), path, Completeness.of(tuple(findings)), (device,), coverage, (0,), 2)


def inspection_with_findings():
    return inspection(
        findings=[
            Finding(
                "op_without_launch",
                Severity.WARNING,
                "11 of 512 device ops have no launch row",
                hint="record host and device activities from before the first launch",
                count=11,
                impact_ns=100_000,
                examples=("gemm at 1.20 ms, 9.00 µs", "gemm at 1.30 ms, 9.00 µs"),
            ),
            Finding(
                "rank_missing", Severity.WARNING, "1 of 2 ranks is here", hint="pass the folder with all ranks", count=1
            ),
            Finding("zero_duration", Severity.INFO, "1 op of no duration", count=1),
        ]
    )


def nasty_inspection():
    finding = Finding("clock_skew", Severity.WARNING, NASTY, hint=NASTY, examples=(NASTY,))
    return inspection(
        NASTY,
        [finding],
        api=NASTY,
        name=NASTY,
        reason=NASTY,
        writer=NASTY,
        versions={NASTY: NASTY},
        categories={(NASTY, NASTY): 3},
    )

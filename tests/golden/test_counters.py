"""Moved bytes against hardware counters: our recordings beside what `ncu` counted for the same kernels.

Kernels whose bytes come from memory must agree with DRAM traffic within 5 %. Those whose data the kernel before has
just written are served from L2; the report says so of each of them, and together they hardly touch memory.
"""

import csv
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from traceaudit.analyses.bandwidth import sources_of
from traceaudit.audit.kerneltimes import kernels
from traceaudit.config import reconcile_options
from traceaudit.config.kernels import KernelFlags, kernel_options
from traceaudit.ingest import read
from traceaudit.model.deviceview import device_views
from traceaudit.model.kerneloptions import KernelOptions
from traceaudit.model.options import Selection, StepOptions
from traceaudit.model.results.kernels import MemoryLevel
from traceaudit.report.format import bytes_text, percent

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "traces"
CONFIG = Path(__file__).parent / "inputs" / "recorder-decoder.json"
PAGE = ROOT / "docs" / "counters.md"

EAGER, REPLAY = str(TRACES / "eager-decode.json.gz"), str(TRACES / "graph-decode.json.gz")
WAYS = {
    "eager": (EAGER, {}, "eager-decode-step"),
    "shapes-from": (REPLAY, {"shapes_from": EAGER}, "graph-decode-step"),
    "model": (REPLAY, {"model": str(CONFIG), "batch": 16, "context": "2048"}, "graph-decode-step"),
}


def counted(name):
    with (TRACES / "ncu" / f"{name}-cache-none.csv").open() as stream:
        return list(csv.DictReader(stream))


def report_of(way):
    path, flags, _ = WAYS[way]
    options = kernel_options(KernelFlags(group_by="shape", **flags), reconcile_options())
    (device,) = kernels(path, options).devices
    return device


def compared(way):
    """Return (name, grid, ncu ns, our bytes a launch, DRAM bytes a launch, launches, level), most time first."""
    ours = defaultdict(lambda: [0, 0, None, ""])
    for row in report_of(way).kernels:
        if row.grid is not None:
            entry = ours[row.name, "*".join(map(str, row.grid))]
            entry[0] += row.rates.moved_bytes or 0
            entry[1] += row.rates.covered_launches
            entry[2] = row.rates.memory_level
            entry[3] = row.shown_name
    theirs = defaultdict(lambda: [0, 0, 0])
    for row in counted(WAYS[way][2]):
        entry = theirs[row["kernel"], row["grid"]]
        entry[0] += 1
        entry[1] += int(row["duration_ns"])
        entry[2] += int(row["dram_read_bytes"]) + int(row["dram_write_bytes"])
    found = []
    for key, (launches, time_ns, dram) in sorted(theirs.items(), key=lambda item: -item[1][1]):
        moved, covered, level, name = ours[key]
        found.append((name, key[1], time_ns, moved / covered if covered else None, dram / launches, launches, level))
    return found


@pytest.fixture(scope="module", params=list(WAYS))
def way(request):
    return request.param


def test_bytes_are_known_for_nine_tenths_of_busy_time(way):
    assert report_of(way).covered_busy_frac > 0.9


def test_kernels_that_read_memory_agree_within_five_percent(way):
    rows = compared(way)
    dram = sum(row[4] * row[5] for row in rows)
    from_memory = [row for row in rows if row[6] is MemoryLevel.DRAM]
    assert len(from_memory) >= 6
    for name, grid, _, moved, traffic, _, _ in from_memory:
        assert moved == pytest.approx(traffic, rel=0.05), (name, grid)
    # They carry the step's memory traffic; what the others add is below one percent.
    assert sum(row[4] * row[5] for row in from_memory) > 0.99 * dram


def test_kernels_out_of_cache_are_marked_and_hardly_touch_memory(way):
    rows = compared(way)
    cached = [row for row in rows if row[6] is MemoryLevel.L2]
    moved = sum(row[3] * row[5] for row in cached)
    traffic = sum(row[4] * row[5] for row in cached)
    assert traffic < 0.2 * moved


@pytest.mark.parametrize("way", ["eager", "shapes-from"])
def test_a_step_moves_what_its_weights_and_cache_hold(way):
    truth = 1_213_370_368 + 805_306_368  # weights and KV cache, from the manifest
    rows = [row for row in compared(way) if row[6] is MemoryLevel.DRAM]
    assert sum(row[3] * row[5] for row in rows) == pytest.approx(truth, rel=0.01)


def known_cases():
    recordings = tomllib.loads((TRACES / "MANIFEST.toml").read_text())["recording"]
    (truth,) = (entry["truth"] for entry in recordings if entry["file"] == "known-kernels.json.gz")
    return {case["name"]: case for case in truth["known"]}


def moved_by_case():
    """Return what each case moves and computes a call, None where no source tells."""
    trace = read(str(TRACES / "known-kernels.json.gz"))
    (view,) = device_views(trace, StepOptions(), Selection())
    work = sources_of(view, KernelOptions()).work
    host = trace.host
    spans = {}
    for row in range(len(host)):
        name = trace.names[host.name[row]]
        if name.startswith("known:") and host.detail[row] < 0:
            spans.setdefault(name.removeprefix("known:"), []).append((host.start_ns[row], host.end_ns[row]))
    found = {}
    for name, own in spans.items():
        inside = [
            op
            for op in range(len(view.ops))
            if view.ops.launch[op] >= 0 and any(begin <= host.start_ns[view.ops.launch[op]] < end for begin, end in own)
        ]
        known = [op for op in inside if work.work[op] >= 0]
        moved = int(sum(work.moved_bytes[known])) // len(own)
        found[name] = (moved if known else None, sum(max(int(work.flop[op]), 0) for op in known) // len(own))
    return found


NO_OP = {"triton-scale-shift", "triton-starved-attention"}
"""Triton kernels launched outside any framework op: only a user's file can say what they move."""

CASTS = {"int8-weight-mm"}
"""Converts its activations before and its result after, which the truth leaves out."""

SAME_TENSOR = {"sdpa-prefill-causal": 134_217_728}
"""Keys and values are one tensor there, which shapes do not show."""


def test_known_kernels_move_what_their_arguments_hold():
    truth, ours = known_cases(), moved_by_case()
    assert {name for name, (moved, _) in ours.items() if moved is None} == NO_OP
    for name, case in truth.items():
        if name in NO_OP:
            continue
        moved, flop = ours[name]
        expected = case["read_bytes"] + case["write_bytes"] + SAME_TENSOR.get(name, 0)
        assert moved == pytest.approx(expected, rel=0.02 if name in CASTS else 0.003), name
        if "mm" in name or "sdpa" in name or "moe" in name:
            assert flop == pytest.approx(case["flop"], rel=0.001), name


def test_the_founding_kernel_is_flagged(tmp_path):
    case = known_cases()["triton-starved-attention"]
    spec = tmp_path / "spec.toml"
    spec.write_text(f"[[kernels]]\nmatch = 'starved'\nbytes = {case['read_bytes'] + case['write_bytes']}\n")
    for flags in ({}, {"spec": str(spec)}):
        options = kernel_options(KernelFlags(**flags), reconcile_options())
        report = kernels(str(TRACES / "known-kernels.json.gz"), options)
        (row,) = (row for row in report.devices[0].kernels if "starved" in row.name)
        assert row.flags == ("underfilled_grid",)
        assert row.bound == "latency"
        assert row.grid == (64, 1, 1)
    assert row.rates.achieved_gbps == pytest.approx(10.1, rel=0.01)
    assert row.rates.peak_frac < 0.003


def table(way):
    lines = [
        "| kernel | grid | GPU time | moved | DRAM (ncu) | ratio | from |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    rows = compared(way)
    total = sum(row[2] for row in rows)
    for name, grid, time_ns, moved, dram, _, level in rows:
        share = percent(time_ns, total)
        if time_ns < 0.01 * total:
            continue
        ours = "-" if moved is None else bytes_text(round(moved))
        ratio = f"{moved / dram:.3f}" if moved is not None and level is MemoryLevel.DRAM else ""
        shown = grid.replace("*", "x")
        lines.append(
            f"| `{name}` | {shown} | {share} | {ours} | {bytes_text(round(dram))} | {ratio} | {level or '-'} |"
        )
    return "\n".join(lines) + "\n"


def test_the_page_shows_the_comparison(way, request):
    begin, end = f"<!-- {way} -->\n", f"<!-- end {way} -->"
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    shown, after = rest.split(end)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{before}{begin}\n{table(way)}\n{end}{after}", encoding="utf-8")
    else:
        assert shown.strip() == table(way).strip()

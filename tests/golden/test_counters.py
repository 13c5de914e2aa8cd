"""Moved bytes against hardware counters: our recordings beside what `ncu` counted for the same kernels.

Counted with the caches flushed before each kernel, reads are what each kernel must bring in, and writes what its
multiprocessors write: moved bytes must agree within 5 % for kernels that hold nine tenths of the time. Counted with the
caches as the step leaves them, DRAM traffic tells which of them come from memory.
"""

import csv
import gzip
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from traceaudit.analyses.bandwidth import sources_of
from traceaudit.audit.kerneltimes import kernels
from traceaudit.config import reconcile_options
from traceaudit.config.kernels import KernelFlags, kernel_options
from traceaudit.ingest import read
from traceaudit.model.bytes.generated import is_generated
from traceaudit.model.deviceview import device_views
from traceaudit.model.kerneloptions import KernelOptions
from traceaudit.model.options import Selection, StepOptions
from traceaudit.model.results.kernels import MemoryLevel
from traceaudit.report.format import bytes_text, percent

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "traces"
CONFIG = Path(__file__).parent / "inputs" / "recorder-decoder.json"
PAGE = ROOT / "docs" / "counters.md"
SECTOR_BYTES = 32

EAGER, REPLAY = str(TRACES / "eager-decode.json.gz"), str(TRACES / "graph-decode.json.gz")
LIBRARY = TRACES / "transformers"
COMPILED, GENERATED = str(LIBRARY / "compiled.json.gz"), str(LIBRARY / "inductor.json.gz")
COMPILED_MODEL = {"model": str(LIBRARY / "compiled-config.json"), "batch": 8, "context": "1025"}
WAYS = {
    "eager": (EAGER, {}, "eager-decode-step"),
    "shapes-from": (REPLAY, {"shapes_from": EAGER}, "graph-decode-step"),
    "model": (REPLAY, {"model": str(CONFIG), "batch": 16, "context": "2048"}, "graph-decode-step"),
    "library": (str(LIBRARY / "dense.json.gz"), {}, "transformers-dense-step"),
    "compiled-shapes-from": (COMPILED, {"shapes_from": GENERATED}, "transformers-compiled-step"),
    "compiled-model": (COMPILED, COMPILED_MODEL, "transformers-compiled-step"),
}
OURS = ("eager", "shapes-from", "model")
"""Recordings of our decoder, of which DRAM traffic was counted within the step too."""

AGREEING = dict.fromkeys(WAYS, 0.9) | {"compiled-shapes-from": 0.89, "compiled-model": 0.8}
"""Share of the time in kernels whose bytes agree; the page says what is missing where it is less than nine tenths."""


@dataclass
class Compared:
    """A kernel: our bytes a launch, bytes counted cold, DRAM bytes within the step, and its time in the trace."""

    name: str
    grid: str
    time_ns: int
    moved: float | None
    counted: float | None = None
    dram: float | None = None
    launches: int = 0
    level: MemoryLevel | None = None

    @property
    def ratio(self):
        return self.moved / self.counted if self.moved is not None and self.counted else None

    @property
    def agrees(self):
        return self.ratio is not None and abs(self.ratio - 1) <= 0.05


def key_of(name, grid):
    """Return what a kernel is known by; each process tunes the grids of generated kernels for itself."""
    return name, "" if is_generated(name) else grid


def counts(name, caches, columns):
    """Return the launches and the mean of a sum of columns, by kernel."""
    sums = defaultdict(lambda: [0, 0])
    with gzip.open(TRACES / "ncu" / f"{name}-cache-{caches}.csv.gz", "rt") as stream:
        for row in csv.DictReader(stream):
            entry = sums[key_of(row["kernel"], row["grid"])]
            entry[0] += 1
            entry[1] += columns(row)
    return {key: (launches, total / launches) for key, (launches, total) in sums.items()}


def compulsory(row):
    """Return bytes read and written with cold caches.

    DRAM reads also hold the kernel's program; misses at the L2 cache count data once for each of its two halves that
    asks for it. What must be read is no more than the less of the two.
    """
    misses = SECTOR_BYTES * int(row["sm_read_miss_sectors"])
    written = SECTOR_BYTES * (int(row["sm_write_sectors"]) + int(row["sm_reduce_sectors"]))
    return min(misses, int(row["dram_read_bytes"])) + written


def report_of(way):
    path, flags, _ = WAYS[way]
    options = kernel_options(KernelFlags(group_by="shape", **flags), reconcile_options())
    (device,) = kernels(path, options).devices
    return device


def compared(way):
    """Return the kernels of the trace beside the counters, most time first."""
    found = {}
    for row in report_of(way).kernels:
        if row.grid is None:
            continue
        key = key_of(row.name, "*".join(map(str, row.grid)))
        entry = found.setdefault(key, [row.shown_name, "x".join(map(str, row.grid)), 0, 0, 0, None])
        entry[2] += row.op_time_ns
        entry[3] += row.rates.moved_bytes or 0
        entry[4] += row.rates.covered_launches
        entry[5] = row.rates.memory_level
    cold = counts(WAYS[way][2], "all", compulsory)
    warm = {}
    if way in OURS:
        warm = counts(WAYS[way][2], "none", lambda row: int(row["dram_read_bytes"]) + int(row["dram_write_bytes"]))
    rows = [
        Compared(
            name,
            grid,
            time_ns,
            moved / covered if covered else None,
            cold.get(key, (0, None))[1],
            warm.get(key, (0, None))[1],
            cold.get(key, (0, None))[0],
            level,
        )
        for key, (name, grid, time_ns, moved, covered, level) in found.items()
    ]
    return sorted(rows, key=lambda row: -row.time_ns)


@pytest.fixture(scope="module", params=list(WAYS))
def way(request):
    return request.param


def test_bytes_are_known_for_nine_tenths_of_busy_time(way):
    assert report_of(way).covered_busy_frac > AGREEING[way]


def test_kernels_of_nine_tenths_of_the_time_agree_within_five_percent(way):
    rows = compared(way)
    agreeing = sum(row.time_ns for row in rows if row.agrees)
    assert agreeing >= AGREEING[way] * sum(row.time_ns for row in rows)


KEEPING_SUMS = ("splitKreduce_kernel", "fusion::lean_reduction_kernel")
"""Add up the partial sums that the kernel before left; no input or output of the op, and never in memory."""

SECTORS = 1024
"""Up to so many bytes, sectors of 32 B count for more than what is used of them."""


def test_what_does_not_agree_is_explained(way):
    rows = compared(way)
    total = sum(row.time_ns for row in rows)
    for row in rows:
        if row.ratio is None or row.agrees or row.time_ns < 0.01 * total or row.counted < SECTORS:
            continue
        assert row.name.startswith(KEEPING_SUMS), (row.name, row.grid, row.ratio)


@pytest.fixture(scope="module", params=OURS)
def our_way(request):
    return request.param


def test_kernels_that_read_memory_agree_with_the_step_s_traffic(our_way):
    rows = [row for row in compared(our_way) if row.dram is not None]
    dram = sum(row.dram * row.launches for row in rows)
    from_memory = [row for row in rows if row.level is MemoryLevel.DRAM]
    assert len(from_memory) >= 6
    for row in from_memory:
        assert row.moved == pytest.approx(row.dram, rel=0.05), (row.name, row.grid)
    # They carry the step's memory traffic; what the others add is below one percent.
    assert sum(row.dram * row.launches for row in from_memory) > 0.99 * dram


def test_kernels_out_of_cache_are_marked_and_hardly_touch_memory(our_way):
    cached = [row for row in compared(our_way) if row.dram is not None and row.level is MemoryLevel.L2]
    assert sum(row.dram * row.launches for row in cached) < 0.2 * sum(row.moved * row.launches for row in cached)


@pytest.mark.parametrize("way", ["eager", "shapes-from"])
def test_a_step_moves_what_its_weights_and_cache_hold(way):
    truth = 1_213_370_368 + 805_306_368  # weights and KV cache, from the manifest
    rows = [row for row in compared(way) if row.level is MemoryLevel.DRAM]
    assert sum(row.moved * row.launches for row in rows) == pytest.approx(truth, rel=0.01)


def test_a_cache_joined_anew_is_found_and_comes_from_memory():
    """Keys and values of 6 layers, joined each: 8 requests, 4 heads of 128, 1024 tokens and the new one."""
    report = kernels(WAYS["library"][0], kernel_options(KernelFlags(), reconcile_options()))
    (finding,) = (finding for finding in report.completeness.findings if finding.code == "kv_copied")
    (row,) = (row for row in report.devices[0].kernels if row.name.count("CatArrayBatchedCopy<"))
    assert finding.count == 3 * 6 * 2
    cache, rotary = 2 * 8 * 4 * 128 * 2 * (1024 + 1 + 1025), 2 * 8 * (16 + 4) * 128 * 2
    assert row.launches == 3 * 6 * (2 + 2)
    assert row.rates.moved_bytes == 3 * 6 * (cache + rotary)
    assert row.rates.memory_level is MemoryLevel.DRAM


def test_copied_heads_are_found_and_counted():
    """`repeat_kv`: 8 requests of 1025 tokens, 4 heads of 128 copied to 16, keys and values apart."""
    options = kernel_options(KernelFlags(**COMPILED_MODEL), reconcile_options())
    report = kernels(COMPILED, options)
    (finding,) = (finding for finding in report.completeness.findings if finding.code == "kv_copied")
    copies = [row for row in report.devices[0].kernels if row.role == "kv_expand"]
    each = 8 * 1025 * 128 * 2
    assert finding.count == sum(row.launches for row in copies) == 52
    assert copies[0].rates.moved_bytes == 52 * (4 + 16) * each
    (attention,) = (row for row in report.devices[0].kernels if row.role == "attention" and row.grid == (1, 16, 8))
    assert attention.rates.moved_bytes / attention.launches == pytest.approx(
        2 * 16 * each + 2 * 8 * 2048 * 2, rel=0.001
    )


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


SHOWN_FRAC = 0.01


def table(way):
    warm = way in OURS
    lines = [
        "| kernel | grid | GPU time | moved | counted | ratio |"
        + (" DRAM in the step | from |" if warm else " from |"),
        "| --- | ---: | ---: | ---: | ---: | ---: |" + (" ---: | --- |" if warm else " --- |"),
    ]
    rows = compared(way)
    total = sum(row.time_ns for row in rows)
    for row in rows:
        if row.time_ns < SHOWN_FRAC * total:
            continue
        cells = [f"`{row.name}`", row.grid, percent(row.time_ns, total), size(row.moved), size(row.counted)]
        cells.append("" if row.ratio is None else f"{row.ratio:.3f}")
        cells += [size(row.dram)] if warm else []
        lines.append("| " + " | ".join([*cells, str(row.level or "-")]) + " |")
    agreeing = sum(row.time_ns for row in rows if row.agrees)
    lines += ["", f"Within 5 %: kernels of {percent(agreeing, total)} of the time."]
    return "\n".join(lines) + "\n"


def size(value):
    return "-" if value is None else bytes_text(round(value))


def test_the_page_shows_the_comparison(way, request):
    begin, end = f"<!-- {way} -->\n", f"<!-- end {way} -->"
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    shown, after = rest.split(end)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{before}{begin}\n{table(way)}\n{end}{after}", encoding="utf-8")
    else:
        assert shown.strip() == table(way).strip()

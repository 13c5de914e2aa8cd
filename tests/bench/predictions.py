"""Predicts one recording from another and compares with what was measured: the table of `docs/commands/whatif.md`.

Each pair of recordings differs in one thing. The change is given to `whatif` as the ratio of the kernels' own times in
the two recordings (or as the known change of a sleep); everything else is the prediction's.

    python tests/bench/predictions.py
"""

import re
import statistics
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traceaudit import audit
from traceaudit.config import reconcile_options, whatif_options
from traceaudit.model.options import ReconcileOptions

TRACES = Path(__file__).parents[2] / "traces"
ATTENTION = "sdpa|lean_reduction|attention"


@dataclass(frozen=True)
class Pair:
    """Predict `after` from `before`: `pattern` takes the ratio of its mean times, or `factor` where that is known."""

    before: str
    after: str
    pattern: str
    factor: str | None = None


PAIRS = (
    Pair("graph-decode", "pairs/graph-context-1024", ATTENTION),
    Pair("graph-decode", "pairs/graph-context-4096", ATTENTION),
    Pair("pairs/graph-attention-1", "pairs/graph-attention-4", ATTENTION),
    Pair("pairs/graph-attention-4", "pairs/graph-attention-16", ATTENTION),
    Pair("pairs/graph-attention-16", "pairs/graph-attention-1", ATTENTION),
    Pair("pairs/eager-context-2048", "pairs/eager-context-1024", ATTENTION),
    Pair("pairs/eager-context-2048", "pairs/eager-context-4096", ATTENTION),
    Pair("pairs/eager-attention-1", "pairs/eager-attention-4", ATTENTION),
    Pair("pairs/eager-attention-4", "pairs/eager-attention-16", ATTENTION),
    Pair("graph-decode-scheduler-sleep", "pairs/stall-context-4096", ATTENTION),
    Pair("graph-decode-scheduler-sleep", "pairs/stall-0ms", "^schedule$", "inf"),
    Pair("graph-decode-scheduler-sleep", "pairs/stall-2ms", "^schedule$", "2"),
    Pair("pairs/stall-2ms", "pairs/stall-0ms", "^schedule$", "inf"),
    Pair("graph-decode-overlapped-copy", "pairs/copy-4mb", "HtoD"),
    Pair("pairs/copy-4mb", "graph-decode-overlapped-copy", "HtoD"),
    Pair("graph-decode-overlapped-copy", "pairs/copy-128mb", "HtoD"),
    Pair("pairs/copy-128mb", "pairs/copy-4mb", "HtoD"),
    Pair("pairs/copy-64mb", "pairs/copy-128mb", "HtoD"),
    Pair("pairs/copy-64mb", "pairs/copy-64mb-context-4096", ATTENTION),
)


def walls() -> dict[str, float]:
    """Return the median unprofiled step of each recording, ns."""
    with (TRACES / "MANIFEST.toml").open("rb") as file:
        manifest = tomllib.load(file)
    return {
        item["file"].removesuffix(".json.gz"): statistics.median(item["truth"]["wall_ns_per_step"])
        for item in manifest["recording"]
    }


def op_time(name: str, pattern: str) -> float:
    """Return the op time of matching kernels per launch of them, ns."""
    device = audit.kernels(f"{TRACES / name}.json.gz", ReconcileOptions()).devices[0]
    rows = [row for row in device.kernels if re.search(pattern, row.name)]
    return sum(row.mean_ns for row in rows)


def rows() -> Iterator[tuple[str, ...]]:
    """Yield one row a pair: names, walls, prediction with range, naive bound, errors."""
    measured = walls()
    for pair in PAIRS:
        if pair.before not in measured or pair.after not in measured:
            continue
        factor = pair.factor or f"{op_time(pair.before, pair.pattern) / op_time(pair.after, pair.pattern):.6f}"
        options = whatif_options(
            reconcile_options(), speedups=(f"{pair.pattern}={factor}",), remove_gaps=False, graph_replay=False
        )
        device = audit.whatif(f"{TRACES / pair.before}.json.gz", options).devices[0]
        wall = measured[pair.after]
        yield (
            pair.before,
            pair.after,
            f"{float(factor):.3g}x",
            *(f"{time / 1e6:.3f}" for time in (device.baseline_ns, device.predicted_ns)),
            f"{device.low_ns / 1e6:.3f} to {device.high_ns / 1e6:.3f}",
            *(f"{time / 1e6:.3f}" for time in (device.naive_ns, wall)),
            f"{100 * (device.predicted_ns / wall - 1):+.1f} %",
            f"{100 * (device.naive_ns / wall - 1):+.1f} %",
        )


HEADINGS = ("from", "to", "change", "step", "predicted", "range", "naive", "measured", "error", "naive's error")

if __name__ == "__main__":
    print("| " + " | ".join(HEADINGS) + " |")
    print("| " + " | ".join("---" if i < 2 else "---:" for i in range(len(HEADINGS))) + " |")
    for row in rows():
        print("| " + " | ".join(row) + " |")

"""How often the gate raises a false alarm, and how often it finds a seeded regression, by resampling real runs.

    python tests/bench/gate_rates.py RUNS [--changed NAME=FOLDER ...] [--runs 1,3,5] [--draws 1000] [--budget FILE]

RUNS is a folder of traces of identical code, one fresh process each. For every number of runs a side, two disjoint
sets are drawn from it and checked: each fail is a false alarm. With ``--changed NAME=FOLDER`` the head side is drawn
from a folder of runs of changed code: each fail is a detection. With ``--kernel REGEX`` a detection counts only if it
names a kernel that the expression finds. ``--json FILE`` keeps the counts.
"""

import argparse
import itertools
import json
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from traceaudit.audit.comparison import SideTraces, compare, read_side
from traceaudit.ingest import locate
from traceaudit.ingest.budgetfile import read_budget
from traceaudit.model.budget import Budget
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results.diff import CheckResult
from traceaudit.model.runs import RunSummary, Side

SEED = 20260101
Z_95 = 1.96
OUTCOMES = ("pass", "inconclusive", "fail")


def main(argv: Sequence[str]) -> int:
    options = parser().parse_args(argv)
    budget = Budget() if options.budget is None else read_budget(options.budget)
    pattern = re.compile(options.kernel) if options.kernel else None
    same = summaries(options.runs_folder)
    print(f"{len(same)} runs of identical code in {options.runs_folder.name}")
    print(
        f"{'head':<24}{'runs a side':>12}{'draws':>8}"
        + "".join(f"{name:>14}" for name in OUTCOMES)
        + "  fail rate, 95 %"
    )
    rows = []
    for count in options.runs:
        pairs = drawn_pairs(same, same, count, options.draws, disjoint=True)
        rows.append(row("identical code", count, [verdict(base, head, budget, None) for base, head in pairs]))
    for name, folder in (item.split("=", 1) for item in options.changed):
        changed = summaries(Path(folder))
        for count in options.runs:
            pairs = drawn_pairs(same, changed, count, options.draws, disjoint=False)
            rows.append(row(name, count, [verdict(base, head, budget, pattern) for base, head in pairs]))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def summaries(folder: Path) -> list[RunSummary]:
    """Read each trace once; what is drawn later are summaries."""
    return [run for path in locate(str(folder)) for run in read_side("run", [path], ReconcileOptions()).side.runs]


def drawn_pairs(
    base: Sequence[RunSummary], head: Sequence[RunSummary], count: int, draws: int, *, disjoint: bool
) -> list[tuple[tuple[RunSummary, ...], tuple[RunSummary, ...]]]:
    """Return all pairs of sets of `count` runs if there are few, else as many drawn ones as asked for."""
    needed = 2 * count if disjoint else count
    if len(base) < needed or len(head) < count:
        return []
    rng = random.Random(SEED)
    ways = math.comb(len(base), count) * math.comb(len(base) - count if disjoint else len(head), count)
    if ways <= draws:
        return [
            (left, right)
            for left in itertools.combinations(base, count)
            for right in itertools.combinations(head, count)
            if not disjoint or not {id(run) for run in left} & {id(run) for run in right}
        ]
    pairs = []
    for _ in range(draws):
        if disjoint:
            both = rng.sample(list(base), 2 * count)
            pairs.append((tuple(both[:count]), tuple(both[count:])))
        else:
            pairs.append((tuple(rng.sample(list(base), count)), tuple(rng.sample(list(head), count))))
    return pairs


def verdict(
    base: tuple[RunSummary, ...], head: tuple[RunSummary, ...], budget: Budget, pattern: re.Pattern[str] | None
) -> str:
    result = compare(SideTraces(Side.of("base", base)), SideTraces(Side.of("head", head)), budget)
    found = str(result.verdict)
    return "fail elsewhere" if found == "fail" and pattern is not None and not named(result, pattern) else found


def named(result: CheckResult, pattern: re.Pattern[str]) -> bool:
    names = [row.name for row in result.diff.kernels if row.violates]
    names += [name for row in result.diff.groups if row.violates for name in (*row.base, *row.head)]
    return any(pattern.search(name) for name in names)


def row(name: str, count: int, verdicts: Sequence[str]) -> dict[str, object]:
    """Print a row of the table and return it."""
    counts = Counter(verdicts)
    total = len(verdicts)
    if not total:
        print(f"{name:<24}{count:>12}{0:>8}  not enough runs")
        return {"head": name, "runs": count, "draws": 0}
    low, high = wilson(counts["fail"], total)
    cells = "".join(f"{counts[outcome]:>14}" for outcome in OUTCOMES)
    rate = f"  {100 * counts['fail'] / total:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    elsewhere = f"; {counts['fail elsewhere']} fail elsewhere" if counts["fail elsewhere"] else ""
    print(f"{name:<24}{count:>12}{total:>8}{cells}{rate}{elsewhere}")
    return {"head": name, "runs": count, "draws": total, **counts, "fail_low": low, "fail_high": high}


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share; draws share runs, so the true one is somewhat wider."""
    share, square = hits / total, Z_95**2 / total
    centre = (share + square / 2) / (1 + square)
    half = Z_95 / (1 + square) * math.sqrt(share * (1 - share) / total + square / (4 * total))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    result.add_argument("runs_folder", type=Path, metavar="RUNS")
    result.add_argument("--changed", action="append", default=[], metavar="NAME=FOLDER")
    result.add_argument("--runs", type=lambda text: [int(part) for part in text.split(",")], default=[1, 3, 5])
    result.add_argument("--draws", type=int, default=1000)
    result.add_argument("--budget")
    result.add_argument("--kernel", metavar="REGEX")
    result.add_argument("--json", type=Path)
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

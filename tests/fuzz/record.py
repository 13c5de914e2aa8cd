"""A recorded run: as many damaged inputs as asked for, each from its own seed, and a table of what came of them.

Run ``python tests/fuzz/record.py --inputs 200000 --jobs 2 --json figures.json`` from the repository's root; it exits
with 1 if any input failed, and prints the kind and seed of each, from which ``--kind KIND --seed SEED`` makes the input
again.
"""

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.engine import KINDS, Inapplicable, damaged, outcome_of
from fuzz.oracle import Failure

RENDERED_EVERY = 25
CHUNK = 50


def seeded(kind: str, seed: int) -> Random:
    """Return the source of chance of an input."""
    return Random(f"{kind} {seed}")


def chunk(kind: str, first: int, count: int) -> tuple[str, Counter[str], list[tuple[int, str]]]:
    """Run some inputs of a kind; return how often each outcome came, and the failures."""
    outcomes: Counter[str] = Counter()
    failures = []
    for seed in range(first, first + count):
        try:
            outcomes[outcome_of(kind, seeded(kind, seed), rendered=seed % RENDERED_EVERY == 0)] += 1
        except Failure as exc:
            outcomes["failed"] += 1
            failures.append((seed, str(exc)))
        except Exception as exc:  # noqa: BLE001  (the damage itself failed; the run goes on, and the exit status tells)
            outcomes["failed"] += 1
            failures.append((seed, f"damaging: {exc!r}"))
    return kind, outcomes, failures


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--kind", choices=sorted(KINDS))
    parser.add_argument("--seed", type=int)
    args = parser.parse_args()
    if args.seed is not None:
        return again(args.kind, args.seed)
    kinds = [args.kind] if args.kind else sorted(KINDS)
    each = -(-args.inputs // len(kinds))
    table: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    begin = time.perf_counter()
    failed = 0
    with ProcessPoolExecutor(args.jobs) as pool:
        jobs = [
            pool.submit(chunk, kind, args.first_seed + first, min(CHUNK, each - first))
            for first in range(0, each, CHUNK)
            for kind in kinds
        ]
        for number, job in enumerate(jobs):
            kind, outcomes, failures = job.result()
            if number % 100 == 0:
                print(f"{number * CHUNK} of {len(jobs) * CHUNK} after {time.perf_counter() - begin:.0f} s", flush=True)
            table[kind] += outcomes
            failed += len(failures)
            for seed, text in failures:
                print(f"{kind} seed {seed}: {text}", flush=True)
    took = time.perf_counter() - begin
    made = sum(sum(row.values()) - row["inapplicable"] for row in table.values())
    figures = {"inputs": made, "seconds": round(took), "jobs": args.jobs, "failed": failed, "kinds": table}
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"{made} inputs in {took:.0f} s, {failed} failed")
    return int(failed > 0)


def again(kind: str, seed: int) -> int:
    """Write the input of a seed to stdout."""
    try:
        sys.stdout.buffer.write(damaged(kind, seeded(kind, seed)).data)
    except Inapplicable:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

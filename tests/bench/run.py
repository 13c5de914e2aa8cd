"""Measures speed and memory of the command line, and prints one table of ratios with their goals.

Nothing here passes or fails: times differ between machines, and a table that says "no" is worth more than an assert
that is switched off. `--hta-python` names an interpreter with HolisticTraceAnalysis, whose load takes minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
RECORDING = HERE.parents[1] / "traces" / "eager-decode.json.gz"
MB = 1_000_000

IN_PROCESS = """
import sys, time
from traceaudit import audit
from traceaudit.model.options import ReconcileOptions
times = []
for _ in range(int(sys.argv[2])):
    begin = time.process_time()
    audit.reconcile(sys.argv[1], ReconcileOptions())
    times.append(time.process_time() - begin)
print(min(times))
"""
SIMDJSON = """
import sys, time
import simdjson
begin = time.perf_counter()
document = simdjson.Parser().load(sys.argv[1])
print(time.perf_counter() - begin)
"""
HTA = """
import sys, time
from hta.trace_analysis import TraceAnalysis
begin = time.perf_counter()
TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
print(time.perf_counter() - begin)
"""


@dataclass
class Row:
    """A line of the table."""

    what: str
    value: str
    goal: str
    met: bool | None

    def __str__(self) -> str:
        met = {True: "yes", False: "no", None: "not measured"}[self.met]
        return f"| {self.what} | {self.value} | {self.goal} | {met} |"


@dataclass
class Run:
    """What one process took."""

    wall_s: float
    peak_bytes: int
    stdout: str


def run(args: Sequence[str | Path]) -> Run:
    """Run a program to its end, and measure its wall time and peak memory."""
    with tempfile.TemporaryFile() as stdout:
        begin = time.perf_counter()
        process = subprocess.Popen(list(map(str, args)), stdout=stdout)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        text = stdout.read().decode()
    if process.returncode:
        raise SystemExit(f"{args} ended with {process.returncode}")
    return Run(wall_s, usage.ru_maxrss * 1024, text)


def best(count: int, args: Sequence[str | Path]) -> Run:
    """Return the fastest of several runs."""
    return min((run(args) for _ in range(count)), key=lambda one: one.wall_s)


def python(code: str, *args: str | Path, interpreter: str = sys.executable) -> list[str | Path]:
    """Return the command that runs a piece of code."""
    return [interpreter, "-c", code, *args]


def generate(target: Path, *size: str) -> dict[str, int]:
    """Write a trace of a size, and return its counts."""
    counts: dict[str, int] = json.loads(run([sys.executable, HERE / "generate.py", RECORDING, target, *size]).stdout)
    return counts


def command(*args: str | Path) -> list[str | Path]:
    """Return the command line of the installed program."""
    script = Path(sys.executable).with_name("traceaudit")
    return [script, *args] if script.exists() else [sys.executable, "-m", "traceaudit", *args]


def large(folder: Path, hta_python: str | None) -> list[Row]:
    """Measure one large trace against other readers of the same file."""
    path = folder / "large.json"
    counts = generate(path, "--bytes", str(300 * MB))
    print(f"{counts['bytes'] / MB:.0f} MB, {counts['events']:,} events, {counts['copies']} copies", flush=True)
    ours = best(5, command("reconcile", path, "--format", "json"))
    check(json.loads(ours.stdout), counts["copies"])
    parse_s = min(float(run(python(SIMDJSON, path)).stdout) for _ in range(5))
    limit = 150 * MB + 60 * counts["events"]
    rows = [
        Row("reconcile / pysimdjson parse, same file", f"{ours.wall_s / parse_s:.2f}", "≤ 1.0", ours.wall_s <= parse_s),
        Row(
            "peak memory / (150 MB + 60 B an event)",
            f"{ours.peak_bytes / limit:.2f} ({ours.peak_bytes / MB:.0f} MB)",
            "≤ 1.0",
            ours.peak_bytes <= limit,
        ),
    ]
    if hta_python is None:
        return [*rows, Row("HTA load / reconcile, same file", "", "≥ 60", met=None)]
    ratio = float(run(python(HTA, path, interpreter=hta_python)).stdout.split()[-1]) / ours.wall_s
    return [*rows, Row("HTA load / reconcile, same file", f"{ratio:.0f}", "≥ 60", ratio >= 60)]


def check(document: dict, copies: int) -> None:
    """Make sure that the copies were read as such: a fast reader that skips rows would win any race."""
    single = json.loads(run(command("reconcile", RECORDING, "--format", "json")).stdout)["devices"][0]["totals"]
    repeated = document["devices"][0]["totals"]
    for key in ("device_ops", "op_time_ns", "busy_ns"):
        if repeated[key] != copies * single[key]:
            raise SystemExit(f"{key}: {repeated[key]} in {copies} copies of {single[key]}")


def scaling(folder: Path) -> list[Row]:
    """Measure the CPU time per event inside one process over sizes."""
    per_event: dict[int, float] = {}
    for events, repeats in ((10_000, 20), (100_000, 7), (1_000_000, 3), (3_000_000, 2)):
        path = folder / "scale.json"
        counts = generate(path, "--events", str(events))
        seconds = float(run(python(IN_PROCESS, path, str(repeats))).stdout)
        per_event[events] = seconds / counts["events"]
        path.unlink()
    least = min(per_event.values())
    shown = ", ".join(f"{events:,}: {value / least:.2f}" for events, value in per_event.items())
    spread = max(per_event.values()) / least
    return [Row(f"CPU time per event, relative to the least ({shown})", f"{spread:.2f}", "≤ 1.20", spread <= 1.2)]


def small(folder: Path) -> list[Row]:
    """Measure what a user waits for on a small trace and for help."""
    path = folder / "small.json"
    generate(path, "--bytes", str(2 * MB))
    ours = best(15, command("reconcile", path)).wall_s
    pandas = best(7, python("import pandas")).wall_s
    shown = best(15, command("--help")).wall_s
    typer = best(15, python("import typer")).wall_s
    return [
        Row("reconcile of a 2 MB trace / import pandas", f"{ours / pandas:.2f}", "< 1.0", ours < pandas),
        Row("--help / import typer", f"{shown / typer:.2f}", "≤ 2.0", shown <= 2 * typer),
    ]


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hta-python", help="interpreter of an environment with HolisticTraceAnalysis")
    parser.add_argument("--quick", action="store_true", help="only the small trace and --help")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = small(folder)
        if not args.quick:
            rows += large(folder, args.hta_python)
            (folder / "large.json").unlink()
            rows += scaling(folder)
    print("\n| measure | value | goal | met |\n| --- | --- | --- | --- |")
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()

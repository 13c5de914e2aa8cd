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
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
RECORDING = HERE.parents[1] / "traces" / "eager-decode.json.gz"
MB = 1_000_000

IN_PROCESS = """
import sys
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from traceaudit import audit
from traceaudit.model.options import ReconcileOptions
def spent():
    return sum(one.ru_utime + one.ru_stime for one in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))
times = []
for _ in range(int(sys.argv[2])):
    begin = spent()
    audit.reconcile(sys.argv[1], ReconcileOptions())
    times.append(spent() - begin)
print(min(times))
"""
SIMDJSON = """
import sys, time
import simdjson
wall, cpu = time.perf_counter(), time.process_time()
document = simdjson.Parser().load(sys.argv[1])
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
HTA = """
import sys, time
from hta.trace_analysis import TraceAnalysis
wall, cpu = time.perf_counter(), time.process_time()
TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


@dataclass
class Row:
    """A line of the table."""

    what: str
    value: str
    goal: str
    met: bool | None

    def __str__(self) -> str:
        met = {True: "yes", False: "no", None: "" if self.value else "not measured"}[self.met]
        return f"| {self.what} | {self.value} | {self.goal} | {met} |"


@dataclass
class Run:
    """What one process took, with the processes that it started."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    stdout: str


def run(args: Sequence[str | Path]) -> Run:
    """Run a program to its end, and measure its time and peak memory."""
    with tempfile.TemporaryFile() as stdout:
        begin = time.perf_counter()
        process = subprocess.Popen(list(map(str, args)), stdout=stdout)
        watch = Watch(process.pid)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        watch.join()
        stdout.seek(0)
        text = stdout.read().decode()
    if process.returncode:
        raise SystemExit(f"{args} ended with {process.returncode}")
    return Run(wall_s, usage.ru_utime + usage.ru_stime, max(usage.ru_maxrss * 1024, watch.peak_bytes), text)


class Watch(threading.Thread):
    """Looks at the memory of a process and those that it started, together; what they share counts for each."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.peak_bytes = 0
        self._process = Path(f"/proc/{pid}")

    def run(self) -> None:
        with suppress(OSError):
            while True:
                children = (self._process / "task" / self._process.name / "children").read_text().split()
                resident = [_resident(self._process), *(_resident(Path("/proc", child)) for child in children)]
                self.peak_bytes = max(self.peak_bytes, sum(resident))
                time.sleep(0.05)


def _resident(process: Path) -> int:
    with suppress(OSError, IndexError):
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def best(count: int, args: Sequence[str | Path]) -> Run:
    """Return the least times of several runs, and the most memory."""
    runs = [run(args) for _ in range(count)]
    wall_s, cpu_s = min(one.wall_s for one in runs), min(one.cpu_s for one in runs)
    return Run(wall_s, cpu_s, max(one.peak_bytes for one in runs), runs[0].stdout)


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
    parses = [tuple(map(float, run(python(SIMDJSON, path)).stdout.split())) for _ in range(5)]
    parse_s, parse_cpu_s = (min(parse[which] for parse in parses) for which in (0, 1))
    limit = 150 * MB + 60 * counts["events"]
    rows = [
        Row("reconcile / pysimdjson parse, same file", f"{ours.wall_s / parse_s:.2f}", "≤ 1.0", ours.wall_s <= parse_s),
        Row(
            "the same in CPU time, workers included",
            f"{ours.cpu_s / parse_cpu_s:.2f} ({ours.cpu_s:.2f} s / {parse_cpu_s:.2f} s)",
            "",
            met=None,
        ),
        Row(
            "peak memory, workers included / (150 MB + 60 B an event)",
            f"{ours.peak_bytes / limit:.2f} ({ours.peak_bytes / MB:.0f} MB)",
            "≤ 1.0",
            ours.peak_bytes <= limit,
        ),
    ]
    if hta_python is None:
        return [*rows, Row("HTA load / reconcile, same file", "", "≥ 60", met=None)]
    *_, wall, cpu = run(python(HTA, path, interpreter=hta_python)).stdout.split()
    ratio, cpu_ratio = float(wall) / ours.wall_s, float(cpu) / ours.cpu_s
    return [
        *rows,
        Row("HTA load / reconcile, same file", f"{ratio:.0f}", "≥ 60", ratio >= 60),
        Row("the same in CPU time, workers included", f"{cpu_ratio:.0f}", "", met=None),
    ]


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
    # Wall times this short are mostly noise where others use the machine; neither side waits for anything.
    ours = best(15, command("reconcile", path)).cpu_s
    pandas = best(10, python("import pandas")).cpu_s
    shown = best(15, command("--help")).cpu_s
    typer = best(15, python("import typer")).cpu_s
    return [
        Row("reconcile of a 2 MB trace / import pandas, CPU time", f"{ours / pandas:.2f}", "< 1.0", ours < pandas),
        Row("--help / import typer, CPU time", f"{shown / typer:.2f}", "≤ 2.0", shown <= 2 * typer),
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

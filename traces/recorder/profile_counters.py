"""Count memory traffic per kernel: the parent runs ``ncu``, the child runs the counted step."""

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import torch

from recorder.counters import COLD_METRICS, METRICS, compact
from recorder.manifest import ENTRY_SUFFIX
from recorder.session import machine
from recorder.subjects import SUBJECTS, subject_loop

__all__ = ["record_counters", "run_counted"]

NCU = (
    "ncu",
    "--clock-control=none",
    "--profile-from-start=off",
    "--graph-profiling=node",
    "--nvtx",
    "--csv",
    "--page=raw",
    "--print-units=base",
    "--print-kernel-base=mangled",
)
WARMUP_STEPS = 3


def record_counters(options: argparse.Namespace, *, command: str) -> None:
    """Write ``SUBJECT-cache-CONTROL.csv.gz`` and its entry into ``options.out``."""
    name = f"{options.subject}-cache-{options.cache_control}"
    options.out.mkdir(parents=True, exist_ok=True)
    raw = options.out / f"{name}.raw"
    # Warm, they are few enough for one pass: in a second one a kernel would find its inputs in the L2 cache.
    metrics = METRICS if options.cache_control == "none" else COLD_METRICS
    counting = [*NCU, f"--metrics={','.join(metrics)}", f"--cache-control={options.cache_control}"]
    child = [sys.executable, str(Path(sys.argv[0]).resolve()), "counted", options.subject]
    done = subprocess.run([*counting, f"--log-file={raw}", *child], check=False, capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="\n")
    done.check_returncode()
    kernels = compact(raw, options.out / f"{name}.csv.gz", metrics)
    entry = {
        "table": "counters",
        "file": f"ncu/{name}.csv.gz",
        "description": f"{SUBJECTS[options.subject]}, kernel by kernel; copies are not counted",
        "command": command,
        "ncu": shlex.join(counting),
        "kernels": kernels,
        **_printed_facts(done.stdout),
        "machine": machine(),
    }
    (options.out / f"{name}{ENTRY_SUFFIX}").write_text(json.dumps(entry, indent=1))
    print(name, kernels, "kernels")


def run_counted(options: argparse.Namespace) -> None:
    """Warm up, then run one step between the start and the stop that ``ncu`` waits for."""
    loop = subject_loop(options.subject)
    for _ in range(WARMUP_STEPS):
        loop.step()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    loop.step()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    print(json.dumps(loop.truth()))


def _printed_facts(output: str) -> dict[str, object]:
    last = next(line for line in reversed(output.splitlines()) if line.startswith("{"))
    return json.loads(last)

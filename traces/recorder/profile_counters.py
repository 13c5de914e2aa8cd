"""Count memory traffic per kernel: the parent runs ``ncu``, the child runs the counted step."""

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import torch

from recorder.config import DENSE, MOE
from recorder.counters import METRICS, compact
from recorder.decoder import Decoder
from recorder.loops import EagerLoop, GraphLoop, Loop
from recorder.manifest import ENTRY_SUFFIX
from recorder.session import machine

__all__ = ["record_counters", "run_counted"]

# Few enough metrics for one pass: in a second one a kernel would find its inputs in the L2 cache.
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
    f"--metrics={','.join(METRICS)}",
)
WARMUP_STEPS = 3
SUBJECTS = {
    "known-kernels": "every known case once",
    "eager-decode-step": "one step of the eager decoder",
    "graph-decode-step": "one replay of the decoder's graph",
    "moe-decode-step": "one step of the decoder with experts",
}


def record_counters(options: argparse.Namespace, *, command: str) -> None:
    """Write ``SUBJECT-cache-CONTROL.csv`` and its entry into ``options.out``."""
    name = f"{options.subject}-cache-{options.cache_control}"
    options.out.mkdir(parents=True, exist_ok=True)
    raw = options.out / f"{name}.raw"
    counting = [*NCU, f"--cache-control={options.cache_control}"]
    child = [sys.executable, str(Path(sys.argv[0]).resolve()), "counted", options.subject]
    done = subprocess.run([*counting, f"--log-file={raw}", *child], check=False, capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="\n")
    done.check_returncode()
    kernels = compact(raw, options.out / f"{name}.csv")
    entry = {
        "table": "counters",
        "file": f"ncu/{name}.csv",
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
    loop = _loop(options.subject)
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


def _loop(subject: str) -> Loop:
    if subject == "known-kernels":
        from recorder.known import KnownKernelsLoop

        return KnownKernelsLoop()
    if subject == "moe-decode-step":
        return EagerLoop(Decoder(MOE))
    decoder = Decoder(DENSE)
    if subject == "graph-decode-step":
        return GraphLoop(decoder, run_ahead=False)
    return EagerLoop(decoder)

"""Find how many extra rounds slow the attention kernel by given shares."""

import dataclasses
import gzip
import json
import statistics
import tempfile
from pathlib import Path

from recorder.config import DecoderConfig
from recorder.decoder import Decoder
from recorder.loops import GraphLoop
from traceaudit.capture import record

__all__ = ["calibrate"]

KERNEL = "decode_attention_kernel"
PROBES = (200, 600)


def calibrate(config: DecoderConfig, percents: list[float]) -> list[int]:
    """Return the rounds for each of ``percents``.

    They follow from the kernel's mean time without rounds and at two numbers of them: the first
    round costs more than the others.
    """
    plain_ns = _kernel_ns(config)
    few_ns, many_ns = (_kernel_ns(dataclasses.replace(config, extra_rounds=rounds)) for rounds in PROBES)
    few, many = PROBES
    round_ns = (many_ns - few_ns) / (many - few)
    first_ns = few_ns - few * round_ns - plain_ns
    return [round((percent / 100 * plain_ns - first_ns) / round_ns) for percent in percents]


def _kernel_ns(config: DecoderConfig) -> float:
    loop = GraphLoop(Decoder(config), run_ahead=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json.gz"
        record(loop.step, path=path, wall_steps=50, wall_repeats=1, profile_steps=20)
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return statistics.fmean(event["dur"] for event in events if event["name"] == KERNEL) * 1000

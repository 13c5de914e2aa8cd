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
PROBE_ROUNDS = 1000


def calibrate(config: DecoderConfig, percents: list[float]) -> list[int]:
    """Return the rounds for each of ``percents``, from the kernel's time with none and with many."""
    plain_ns = _kernel_ns(config)
    slowed_ns = _kernel_ns(dataclasses.replace(config, extra_rounds=PROBE_ROUNDS))
    per_round_ns = (slowed_ns - plain_ns) / PROBE_ROUNDS
    return [round(percent / 100 * plain_ns / per_round_ns) for percent in percents]


def _kernel_ns(config: DecoderConfig) -> float:
    loop = GraphLoop(Decoder(config), run_ahead=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json.gz"
        record(loop.step, path=path, wall_steps=50, wall_repeats=1, profile_steps=20)
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return statistics.median(event["dur"] for event in events if event["name"] == KERNEL) * 1000

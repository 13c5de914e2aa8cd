"""Record one scenario in this process and describe it for the manifest."""

import argparse
import dataclasses
import json
import os
import platform
from pathlib import Path

import torch

from recorder.config import DecoderConfig
from recorder.loops import SlowHostLoop
from recorder.manifest import ENTRY_SUFFIX
from recorder.scenarios import SCENARIOS, Settings
from traceaudit.capture import record

__all__ = ["machine", "record_scenario"]


def record_scenario(options: argparse.Namespace, *, command: str) -> None:
    """Write ``NAME.json.gz`` and ``NAME.entry.json`` into ``options.out``."""
    if options.scenario not in SCENARIOS:
        raise SystemExit(f"no scenario {options.scenario!r}; known: {', '.join(SCENARIOS)}")
    scenario = SCENARIOS[options.scenario]
    name = options.name or options.scenario
    settings = _settings(options)
    steps = options.steps or scenario.steps
    options.out.mkdir(parents=True, exist_ok=True)
    # The trace keeps the path it was written to: a bare file name says nothing of the machine.
    os.chdir(options.out)

    Path(name).parent.mkdir(parents=True, exist_ok=True)

    config = settings.config if scenario.runs_decoder else None
    loop = scenario.build(settings)
    if settings.host_delay_ns:
        loop = SlowHostLoop(loop, delay_ns=settings.host_delay_ns)
    recording = record(
        loop.step,
        path=f"{name}.json.gz",
        warmup_steps=10,
        wall_steps=options.wall_steps,
        wall_repeats=options.wall_repeats,
        profile_steps=steps,
        step_markers=scenario.step_markers,
        record_shapes=scenario.record_shapes,
        with_stack=scenario.with_stack,
        batch=config.batch if config else None,
        context=config.context if config else None,
        details={"scenario": options.scenario},
    )
    entry: dict[str, object] = {
        "table": "recording",
        "file": recording.path.as_posix(),
        "description": scenario.description,
        "command": command,
        "steps": steps,
        "record_shapes": scenario.record_shapes,
        "with_stack": scenario.with_stack,
        "profiler_step": scenario.step_markers,
        "machine": machine(),
        "truth": {
            "wall_ns_per_step": list(recording.wall.ns_per_step),
            "wall_steps": recording.wall.steps,
            **loop.truth(),
        },
    }
    if config:
        entry["decoder"] = dataclasses.asdict(config) | {
            "weight_bytes": config.weight_bytes,
            "kv_bytes": config.kv_bytes,
            "flop": config.flop,
        }
    Path(f"{name}{ENTRY_SUFFIX}").write_text(json.dumps(entry, indent=1))
    print(name, recording.path.stat().st_size, "bytes, wall", recording.wall.ns_per_step)


def machine() -> dict[str, object]:
    """Return what the numbers depend on: device, driver and versions."""
    versions: dict[str, object] = {"python": platform.python_version(), "torch": torch.__version__}
    if not torch.cuda.is_available():
        return versions
    import triton

    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": _driver_version(),
        "cuda": torch.version.cuda,
        **versions,
        "triton": triton.__version__,
    }


def _driver_version() -> str:
    text = Path("/proc/driver/nvidia/version").read_text()
    return next(word for word in text.split() if word.count(".") == 2 and word[0].isdigit())


def _settings(options: argparse.Namespace) -> Settings:
    chosen = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(DecoderConfig)
        if getattr(options, field.name, None) is not None
    }
    return Settings(
        config=DecoderConfig(**chosen),
        device=options.device,
        sleep_ns=round(options.sleep_ms * 1e6),
        load_bytes=round(options.load_mb * 1e6),
        store_bytes=round(options.store_mb * 1e6),
        sync_every=options.sync_every,
        host_delay_ns=round(options.host_delay_us * 1e3),
    )

"""Record one scenario in this process and describe it for the manifest."""

import argparse
import dataclasses
import hashlib
import json
import os
import platform
from pathlib import Path

import torch

from recorder.config import MODELS, DecoderConfig
from recorder.exclusive import exclusive
from recorder.loops import SlowHostLoop, WithFiles
from recorder.manifest import ENTRY_SUFFIX
from recorder.scenarios import SCENARIOS, Scenario, Settings
from traceaudit.capture import Recording, record

__all__ = ["config_from", "device_label", "machine", "record_scenario"]


def record_scenario(options: argparse.Namespace, *, command: str) -> None:
    """Write ``NAME.json.gz`` and ``NAME.entry.json`` into ``options.out``.

    A run of a series is named after both. A scenario that serves a benchmark writes its log and its
    result too, and the model's ``config.json``.
    """
    if options.scenario not in SCENARIOS:
        raise SystemExit(f"no scenario {options.scenario!r}; known: {', '.join(SCENARIOS)}")
    scenario = SCENARIOS[options.scenario]
    if torch.version.cuda:
        # Imported before the device is held, since it takes long.
        import recorder.triton_kernels  # noqa: F401
    options.out.mkdir(parents=True, exist_ok=True)
    # The trace keeps the path it was written to: a bare file name says nothing of the machine.
    os.chdir(options.out)
    with exclusive():
        _record(options, scenario, command)


def _record(options: argparse.Namespace, scenario: Scenario, command: str) -> None:
    name = f"{options.series}-{options.run:02}" if options.series else options.name or options.scenario
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    settings = _settings(options)
    steps = options.steps or scenario.steps
    config = settings.config if scenario.runs_decoder else None
    loop = scenario.build(settings)
    beside = loop.write_beside(name) if isinstance(loop, WithFiles) else {}
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
        record_shapes=scenario.record_shapes and not options.no_shapes,
        with_stack=scenario.with_stack,
        batch=config.batch if config else None,
        context=config.context if config else None,
        details={"scenario": options.scenario},
    )
    facts: dict[str, object] = {
        "description": options.description or scenario.description,
        "command": command,
        "steps": steps,
        "record_shapes": scenario.record_shapes and not options.no_shapes,
        "with_stack": scenario.with_stack,
        "profiler_step": scenario.step_markers,
        "machine": machine(),
    }
    if config:
        facts["decoder"] = _described(config)
    measured = _measured(recording) | loop.truth()
    if options.series:
        run = {"file": recording.path.as_posix(), "device": device_label(), **measured}
        entry = {"table": "series", "name": options.series, **facts, "run": [run]}
    else:
        entry = {"table": "recording", "file": recording.path.as_posix(), **facts, "truth": measured}
    if beside:
        entry["beside"] = [{"file": file, "description": text} for file, text in beside.items()]
    if config and config.experts:
        _write_model(config, Path(name).parent)
    Path(f"{name}{ENTRY_SUFFIX}").write_text(json.dumps(entry, indent=1))
    print(name, recording.path.stat().st_size, "bytes, wall", recording.wall.ns_per_step)


def _write_model(config: DecoderConfig, folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(config.published(), indent=1) + "\n")
    entry = {
        "table": "model",
        "file": (folder / "config.json").as_posix(),
        "description": "the model's shape, as a checkpoint of its family would give it",
    }
    (folder / f"config{ENTRY_SUFFIX}").write_text(json.dumps(entry, indent=1))


def _measured(recording: Recording) -> dict[str, object]:
    return {"wall_ns_per_step": list(recording.wall.ns_per_step), "wall_steps": recording.wall.steps}


def _described(config: DecoderConfig) -> dict[str, object]:
    return dataclasses.asdict(config) | {
        "weight_bytes": config.weight_bytes,
        "expert_bytes": config.expert_bytes,
        "kv_bytes": config.kv_bytes,
        "flop": config.flop,
    }


def device_label() -> str:
    """Return what tells devices of one kind apart, without naming any."""
    if not torch.cuda.is_available():
        return ""
    return hashlib.sha256(str(torch.cuda.get_device_properties().uuid).encode()).hexdigest()[:8]


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


def config_from(options: argparse.Namespace) -> DecoderConfig:
    """Return the decoder that the options name, with what they change in it."""
    chosen = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(DecoderConfig)
        if getattr(options, field.name, None) is not None
    }
    return dataclasses.replace(MODELS[options.model], **chosen)


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        config=config_from(options),
        device=options.device,
        sleep_ns=round(options.sleep_ms * 1e6),
        load_bytes=round(options.load_mb * 1e6),
        store_bytes=round(options.store_mb * 1e6),
        sync_every=options.sync_every,
        host_delay_ns=round(options.host_delay_us * 1e3),
        graph=options.graph,
        clients=options.clients,
    )

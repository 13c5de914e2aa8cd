"""The scenarios by name: which loop, over which decoder, recorded how."""

from collections.abc import Callable
from dataclasses import dataclass

from recorder.config import DecoderConfig
from recorder.decoder import Decoder
from recorder.engine_loop import EngineLoop
from recorder.loops import (
    CompiledLoop,
    EagerLoop,
    GraphLoop,
    Loop,
    OverlappedCopyLoop,
    RunAheadEngineLoop,
    SchedulerSleepLoop,
    SynchronousEngineLoop,
)

__all__ = ["SCENARIOS", "Scenario", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line can change in a scenario."""

    config: DecoderConfig
    device: str
    sleep_ns: int
    load_bytes: int
    store_bytes: int
    sync_every: int
    host_delay_ns: int
    graph: bool
    clients: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """A loop and how it is recorded. ``steps`` keeps the compressed file near 300 kB or below."""

    description: str
    build: Callable[[Settings], Loop]
    steps: int = 5
    record_shapes: bool = False
    with_stack: bool = False
    step_markers: bool = True
    runs_decoder: bool = True


def _decoder(settings: Settings) -> Decoder:
    return Decoder(settings.config, settings.device)


def _eager(settings: Settings) -> Loop:
    return EagerLoop(_decoder(settings))


def _graph(settings: Settings) -> Loop:
    return GraphLoop(_decoder(settings), run_ahead=True)


def _sleeping(settings: Settings) -> Loop:
    return SchedulerSleepLoop(_decoder(settings), sleep_ns=settings.sleep_ns)


def _syncing(settings: Settings) -> Loop:
    return EagerLoop(_decoder(settings), sync_every=settings.sync_every)


def _copying(settings: Settings) -> Loop:
    return OverlappedCopyLoop(_decoder(settings), load_bytes=settings.load_bytes, store_bytes=settings.store_bytes)


def _engine(settings: Settings) -> Loop:
    return EngineLoop(_decoder(settings), graph=settings.graph, clients=settings.clients)


def _known(_settings: Settings) -> Loop:
    from recorder.known import KnownKernelsLoop

    return KnownKernelsLoop()


def _pretrained(kind: str, *, compiled: str = "") -> Callable[[Settings], Loop]:
    def build(settings: Settings) -> Loop:
        from recorder.pretrained import PretrainedLoop

        return PretrainedLoop(kind, compiled=compiled, device=settings.device)

    return build


SCENARIOS: dict[str, Scenario] = {
    "eager-decode": Scenario(
        "ops launched one by one from Python, host-bound, shapes recorded",
        _eager,
        record_shapes=True,
    ),
    "graph-decode": Scenario("one CUDA graph launch a step, launched before the last step's tokens are read", _graph),
    "graph-decode-scheduler-sleep": Scenario(
        "graph decode behind a scheduler that sleeps a known time while the device idles", _sleeping
    ),
    "eager-decode-item-sync": Scenario("eager decode that reads a flag back with .item() every few layers", _syncing),
    "graph-decode-overlapped-copy": Scenario(
        "graph decode with pinned copies to and from the host on a second stream", _copying
    ),
    "compile-decode": Scenario(
        "each layer compiled by Inductor, no CUDA graphs",
        lambda settings: CompiledLoop(_decoder(settings)),
    ),
    "eager-decode-no-profiler-step": Scenario("eager decode without ProfilerStep rows", _eager, step_markers=False),
    "graph-decode-no-profiler-step": Scenario("graph decode without ProfilerStep rows", _graph, step_markers=False),
    "eager-decode-python-stacks": Scenario("eager decode with Python frames recorded", _eager, with_stack=True),
    "sglang-like-run-ahead": Scenario(
        "engine loop that launches a batch before reading the last one, step[decode bs=N] markers",
        lambda settings: RunAheadEngineLoop(_decoder(settings)),
        steps=6,
        step_markers=False,
    ),
    "vllm-like-synchronous": Scenario(
        "engine loop that schedules, runs and samples in turn, execute_context markers",
        lambda settings: SynchronousEngineLoop(_decoder(settings)),
        step_markers=False,
    ),
    "engine": Scenario(
        "engine loop with a scheduler that admits the batch while more requests wait, step[decode bs=N] markers",
        _engine,
        steps=4,
        step_markers=False,
    ),
    "known-kernels": Scenario(
        "kernels and copies whose bytes and FLOP are known, L2 cleared before each",
        _known,
        steps=3,
        record_shapes=True,
        runs_decoder=False,
    ),
    "transformers-dense": Scenario(
        "a dense model as the transformers library runs it, op by op, its cache joined anew in each step",
        _pretrained("dense"),
        steps=3,
        record_shapes=True,
        runs_decoder=False,
    ),
    "transformers-moe": Scenario(
        "a mixture of experts as the transformers library runs it, op by op",
        _pretrained("moe"),
        steps=3,
        record_shapes=True,
        runs_decoder=False,
    ),
    "transformers-compiled": Scenario(
        "the dense model compiled into CUDA graphs over a cache of fixed size",
        _pretrained("dense", compiled="reduce-overhead"),
        steps=4,
        runs_decoder=False,
    ),
    "transformers-inductor": Scenario(
        "the same kernels as of transformers-compiled launched one by one, shapes recorded",
        _pretrained("dense", compiled="default"),
        steps=3,
        record_shapes=True,
        runs_decoder=False,
    ),
}

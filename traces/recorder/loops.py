"""Decode loops: how a step is launched, and what the host does between steps."""

import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch.profiler import record_function

from recorder.decoder import Decoder

__all__ = [
    "CompiledLoop",
    "EagerLoop",
    "GraphLoop",
    "Loop",
    "OverlappedCopyLoop",
    "RunAheadEngineLoop",
    "SchedulerSleepLoop",
    "SlowHostLoop",
    "SynchronousEngineLoop",
    "WithFiles",
    "capture_graph",
]


class Loop(Protocol):
    """One decode step at a time."""

    def step(self) -> None:
        """Run one step."""

    def truth(self) -> dict[str, object]:
        """Return what is known of a step from outside the profiler."""


@runtime_checkable
class WithFiles(Protocol):
    """A loop that has more to keep than its trace."""

    def write_beside(self, stem: str) -> dict[str, str]:
        """Write files whose names begin with ``stem``; return them and what each is."""


class EagerLoop:
    """Every op is launched from Python; the host waits for nothing unless asked to.

    ``sync_every`` reads a flag back after every so many layers, and the tokens at the end.
    """

    def __init__(self, decoder: Decoder, *, sync_every: int = 0) -> None:
        self._decoder = decoder
        self._sync_every = sync_every

    def step(self) -> None:
        self._decoder.step(sync_every=self._sync_every)
        if self._sync_every and self._decoder.tokens.sum().item() < 0:
            raise ValueError("a token id is negative")

    def truth(self) -> dict[str, object]:
        facts: dict[str, object] = {}
        if self._sync_every:
            facts["syncs_per_step"] = self._decoder.config.layers // self._sync_every + 1
        if experts := self._decoder.experts_read():
            facts["experts_read_by_layer"] = experts
        return facts


class CompiledLoop:
    """Each layer compiled by Inductor, without CUDA graphs; the host waits for nothing."""

    def __init__(self, decoder: Decoder) -> None:
        for layer in decoder.layers:
            layer.compile(dynamic=False, fullgraph=True)
        self._decoder = decoder

    def step(self) -> None:
        self._decoder.step()

    def truth(self) -> dict[str, object]:
        return {}


class LateTokens:
    """Tokens that reach the host one step late, so that it runs ahead of the device."""

    def __init__(self, tokens: torch.Tensor) -> None:
        self._tokens = tokens
        self._results = [tokens.cpu().pin_memory() for _ in range(2)]
        self._ready = [torch.cuda.Event(), torch.cuda.Event()]
        self._step = 0

    def send(self) -> None:
        """Copy this step's tokens to the host without waiting for them."""
        turn = self._step % 2
        self._results[turn].copy_(self._tokens, non_blocking=True)
        self._ready[turn].record()
        self._step += 1

    def receive(self) -> list[int]:
        """Wait for the tokens of the step before the last one sent; none before the second."""
        if self._step < 2:
            return []
        turn = self._step % 2
        self._ready[turn].synchronize()
        return self._results[turn].tolist()


class GraphLoop:
    """The whole step is one graph launch; its tokens are read before or after the next launch.

    With ``run_ahead`` the host reads them after the next launch, and the device never waits for it.
    """

    def __init__(self, decoder: Decoder, *, run_ahead: bool) -> None:
        self._tokens = decoder.tokens
        self._replay = capture_graph(decoder.step)
        self._late = LateTokens(decoder.tokens) if run_ahead else None

    def step(self) -> None:
        self._replay()
        if self._late is None:
            self._tokens.tolist()
        else:
            self._late.send()
            self._late.receive()

    def truth(self) -> dict[str, object]:
        return {"graph_launches_per_step": 1, "steps_launched_ahead": int(self._late is not None)}


class SchedulerSleepLoop:
    """A graph loop whose scheduler sleeps, device idle, under the annotation ``schedule``."""

    def __init__(self, decoder: Decoder, *, sleep_ns: int) -> None:
        self._loop = GraphLoop(decoder, run_ahead=False)
        self._sleep_ns = sleep_ns
        self._slept_ns: list[int] = []

    def step(self) -> None:
        with record_function("schedule"):
            begin_ns = time.perf_counter_ns()
            time.sleep(self._sleep_ns / 1e9)
            self._slept_ns.append(time.perf_counter_ns() - begin_ns)
        self._loop.step()

    def truth(self) -> dict[str, object]:
        return {
            "sleep_ns_per_step": self._sleep_ns,
            "slept_ns_median": sorted(self._slept_ns)[len(self._slept_ns) // 2],
            "sleep_annotation": "schedule",
            **self._loop.truth(),
        }


class OverlappedCopyLoop:
    """A graph loop that loads and stores pinned host memory on a second stream meanwhile.

    The step ends when both the graph and the copies have ended, as with KV cache offloading.
    """

    def __init__(self, decoder: Decoder, *, load_bytes: int, store_bytes: int) -> None:
        self._decoder = decoder
        self._replay = capture_graph(decoder.step)
        self._copies = torch.cuda.Stream()
        self._load = _host_and_device(load_bytes)
        self._store = _host_and_device(store_bytes)

    def step(self) -> None:
        main = torch.cuda.current_stream()
        self._copies.wait_stream(main)
        self._replay()
        with torch.cuda.stream(self._copies):
            self._load[1].copy_(self._load[0], non_blocking=True)
            self._store[0].copy_(self._store[1], non_blocking=True)
        main.wait_stream(self._copies)
        self._decoder.tokens.tolist()

    def truth(self) -> dict[str, object]:
        return {
            "host_to_device_bytes_per_step": self._load[0].nbytes,
            "device_to_host_bytes_per_step": self._store[0].nbytes,
            "graph_launches_per_step": 1,
        }


class SlowHostLoop:
    """Another loop whose host is busy for a known time before each step."""

    def __init__(self, loop: Loop, *, delay_ns: int) -> None:
        self._loop = loop
        self._delay_ns = delay_ns

    def step(self) -> None:
        # Spinning, since a sleep this short would last several times as long as asked for.
        end_ns = time.perf_counter_ns() + self._delay_ns
        while time.perf_counter_ns() < end_ns:
            pass
        self._loop.step()

    def truth(self) -> dict[str, object]:
        return {"host_delay_ns_per_step": self._delay_ns, **self._loop.truth()}


class RunAheadEngineLoop:
    """SGLang's overlapped loop: a batch is launched before the last one's result is read.

    Each launch stands under ``step[decode bs=N]``.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._replay = capture_graph(decoder.step)
        self._late = LateTokens(decoder.tokens)
        self._marker = f"step[decode bs={decoder.config.batch}]"
        self._texts: list[list[int]] = [[] for _ in range(decoder.config.batch)]

    def step(self) -> None:
        with record_function(self._marker):
            self._replay()
        self._late.send()
        with record_function("process_batch_result"):
            for text, token in zip(self._texts, self._late.receive(), strict=False):
                text.append(token)

    def truth(self) -> dict[str, object]:
        return {"graph_launches_per_step": 1, "steps_launched_ahead": 1}


class SynchronousEngineLoop:
    """A vLLM-like loop: schedule, run the model, sample to the host, one after the other.

    The model runs under ``execute_context_0(0)_generation_N(N)``.
    """

    def __init__(self, decoder: Decoder) -> None:
        batch = decoder.config.batch
        self._decoder = decoder
        self._replay = capture_graph(decoder.step)
        self._marker = f"execute_context_0(0)_generation_{batch}({batch})"
        self._lengths = dict.fromkeys(range(batch), decoder.config.context)

    def step(self) -> None:
        with record_function("schedule"):
            running = sorted(self._lengths, key=lambda request: -self._lengths[request])
        with record_function(self._marker):
            self._replay()
        with record_function("sample"):
            tokens = self._decoder.tokens.tolist()
        for request, _token in zip(running, tokens, strict=True):
            self._lengths[request] += 1

    def truth(self) -> dict[str, object]:
        return {"graph_launches_per_step": 1}


def capture_graph(step: Callable[[], None]) -> Callable[[], None]:
    """Capture ``step`` into a CUDA graph and return its replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _host_and_device(size_bytes: int) -> tuple[torch.Tensor, torch.Tensor]:
    host = torch.randint(256, (size_bytes,), dtype=torch.uint8).pin_memory()
    return host, host.cuda()

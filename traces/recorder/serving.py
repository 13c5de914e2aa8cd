"""A server's engine loop: waiting and running requests, one prefill or decode pass at a time."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.profiler import record_function

from recorder.decoder import Decoder
from recorder.serving_log import ServingLog

__all__ = ["Engine", "Request"]


@dataclass(slots=True)
class Request:
    """A prompt that fills its part of the KV cache, and the times of the tokens that it got."""

    output_tokens: int
    sent_ns: int = field(default_factory=time.perf_counter_ns)
    token_ns: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)


class Engine:
    """Admits requests up to the batch of its decoder, which runs whole, padded where few run.

    All of a prompt but its last token is taken to be cached, so that a prefill computes one token for
    each new request. A pass is prefill or decode; the host waits for the tokens of each. The names of
    the host's ranges are SGLang's.
    """

    def __init__(self, decoder: Decoder, *, decode: Callable[[], None], log: ServingLog) -> None:
        self._decoder = decoder
        self._decode = decode
        self._log = log
        self._slots: list[Request | None] = [None] * decoder.config.batch
        self._waiting: deque[Request] = deque()
        self._tokens: list[int] = decoder.tokens.tolist()

    @property
    def running(self) -> int:
        """Requests that have a slot."""
        return sum(request is not None for request in self._slots)

    @property
    def busy(self) -> bool:
        """Whether any request runs or waits."""
        return bool(self._waiting) or self.running > 0

    def send(self, request: Request) -> None:
        """Queue a request."""
        self._waiting.append(request)

    def step(self) -> list[Request]:
        """Run one pass; return the requests that it completed."""
        with record_function("get_next_batch_to_run"):
            before = self.running
            admitted = self._admit()
        if admitted:
            self._prefill(admitted, before)
            return []
        with record_function(f"step[decode bs={before}]"):
            self._decode()
        with record_function("process_batch_result"):
            self._tokens = self._decoder.tokens.tolist()
            completed = self._give(range(len(self._slots)))
        self._log.decoded(before, queued=len(self._waiting))
        return completed

    def _admit(self) -> list[int]:
        admitted = []
        for slot, request in enumerate(self._slots):
            if request is None and self._waiting:
                self._slots[slot] = self._waiting.popleft()
                admitted.append(slot)
        return admitted

    def _prefill(self, admitted: list[int], running: int) -> None:
        self._log.prefilled(len(admitted), running=running, queued=len(self._waiting))
        with record_function(f"step[extend bs={len(admitted)}]"):
            self._decoder.step()
            computed = self._decoder.tokens.tolist()
        # The pass ran the padded batch: only the new requests keep what it gave.
        for slot in admitted:
            self._tokens[slot] = computed[slot]
        self._decoder.tokens.copy_(torch.tensor(self._tokens))
        self._give(admitted)

    def _give(self, slots: list[int] | range) -> list[Request]:
        now_ns = time.perf_counter_ns()
        completed = []
        for slot in slots:
            request = self._slots[slot]
            if request is None:
                continue
            request.text.append(self._tokens[slot])
            request.token_ns.append(now_ns)
            if len(request.text) >= request.output_tokens:
                self._slots[slot] = None
                completed.append(request)
        return completed

"""The lines that SGLang 0.5.10 writes about its batches, on one GPU and with ``SGLANG_LOG_MS=1``."""

import time
from datetime import datetime

__all__ = ["ServingLog"]

DECODE_INTERVAL = 40


class ServingLog:
    """Collects the lines of one run; a Decode line after every 40 decode passes.

    ``pool_tokens`` is the size of the KV cache. Each request holds ``context`` tokens of it.
    """

    def __init__(self, *, context: int, pool_tokens: int, graph: bool) -> None:
        self.lines: list[str] = []
        self._context = context
        self._pool_tokens = pool_tokens
        self._graph = graph
        self._passes = 0
        self._generated = 0
        self._since = self._prefilled_at = time.perf_counter()
        self._prefill_tokens = 0

    def started(self, *, admitted: int, free_gb: float) -> None:
        """Write what a server says before its first batch."""
        if self._graph:
            self._write(f"Capture cuda graph bs [{admitted}]")
        self._write(
            f"max_total_num_tokens={self._pool_tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
            f"max_running_requests={admitted}, context_len={self._context}, available_gpu_mem={free_gb:.2f} GB"
        )

    def prefilled(self, new: int, *, running: int, queued: int) -> None:
        """Note a prefill of ``new`` prompts beside ``running`` requests."""
        now = time.perf_counter()
        rate = self._prefill_tokens / (now - self._prefilled_at)
        self._prefilled_at, self._prefill_tokens = now, new
        self._write(
            f"Prefill batch, #new-seq: {new}, #new-token: {new}, #cached-token: {new * (self._context - 1)}, "
            f"token usage: {self._usage(running):.2f}, #running-req: {running}, #queue-req: {queued}, "
            f"cuda graph: False, input throughput (token/s): {rate:.2f}"
        )

    def decoded(self, running: int, *, queued: int) -> None:
        """Note a decode pass of ``running`` requests."""
        self._passes += 1
        self._generated += running
        if self._passes % DECODE_INTERVAL:
            return
        now = time.perf_counter()
        rate = self._generated / (now - self._since)
        self._since, self._generated = now, 0
        self._write(
            f"Decode batch, #running-req: {running}, #token: {running * self._context}, "
            f"token usage: {self._usage(running):.2f}, cuda graph: {self._graph}, "
            f"gen throughput (token/s): {rate:.2f}, #queue-req: {queued}"
        )

    def _usage(self, running: int) -> float:
        return running * self._context / self._pool_tokens

    def _write(self, message: str) -> None:
        stamp = (
            datetime.now().astimezone().isoformat(sep=" ", timespec="milliseconds")[: len("2026-01-02 03:04:05.678")]
        )
        self.lines.append(f"[{stamp}] {message}")

"""Results of serving benchmarks, and the step time that follows from them.

Read are the JSON or JSON Lines files of SGLang's ``bench_serving``, ``bench_one_batch`` and ``bench_one_batch_server``,
and of vLLM's ``bench serve``. Of several runs in one file the last counts: these tools append.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from traceaudit.errors import ConfigError, TraceFormatError
from traceaudit.ingest.jsonfaults import kind_of
from traceaudit.model.results import Wall
from traceaudit.units import NS_PER_MS, NS_PER_S

__all__ = ["BenchmarkResult", "BenchmarkTool", "read_benchmark", "step_wall"]

MAX_BYTES = 512 * 1024 * 1024
"""Results with every request's details stay far below this."""


_LEAST, _MOST = 1e-9, 1e12
_TOOLS = "give the result file of sglang bench_serving, bench_one_batch or vllm bench serve"


class BenchmarkTool(StrEnum):
    """What wrote a result, by its keys."""

    SGLANG_SERVING = "sglang bench_serving"
    SGLANG_ONE_BATCH = "sglang bench_one_batch"
    SGLANG_ONE_BATCH_SERVER = "sglang bench_one_batch_server"
    VLLM_SERVING = "vllm bench serve"


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """One run of a benchmark; None where the tool does not say.

    Attributes
    ----------
    tool
        What wrote the result.
    where
        File and line.
    output_throughput
        Tokens generated a second, over the whole run; for ``bench_one_batch_server`` over its decoding alone.
    concurrency
        Requests in flight on average as the client sees them: those that wait in the server's queue count.
    max_concurrency
        Requests that the client keeps in flight at most.
    batch
        Requests of the one batch.
    accept_length
        Tokens a request emits in one step on average, the one beyond the drafts included; 1 without speculation.
    mean_tpot_ns
        Time per output token after the first, averaged over requests.
    decode_step_ns
        Median time of one decode step between two synchronisations.
    """

    tool: BenchmarkTool
    where: str
    output_throughput: float | None = None
    concurrency: float | None = None
    max_concurrency: float | None = None
    batch: float | None = None
    accept_length: float | None = None
    mean_tpot_ns: int | None = None
    decode_step_ns: int | None = None


def read_benchmark(path: str) -> BenchmarkResult:
    """Read the last result of a benchmark's file.

    Raises
    ------
    ConfigError
        If the file cannot be read, or a value in it is no positive number.
    TraceFormatError
        If it is no result of a benchmark that is known here.
    """
    where, run = _last_run(path, _text(path))
    tool = _tool_of(run)
    if tool is None:
        raise TraceFormatError(
            "not a benchmark result that is known here",
            where=where,
            hint=_TOOLS,
        )
    take = _Taker(run, where)
    if tool is BenchmarkTool.SGLANG_ONE_BATCH:
        return BenchmarkResult(
            tool,
            where,
            output_throughput=take("median_decode_throughput"),
            batch=take("batch_size"),
            decode_step_ns=take.time("median_decode_latency", NS_PER_S),
        )
    if tool is BenchmarkTool.SGLANG_ONE_BATCH_SERVER:
        return BenchmarkResult(
            tool,
            where,
            output_throughput=take("output_throughput"),
            batch=take("batch_size"),
            accept_length=take("acc_length"),
        )
    return BenchmarkResult(
        tool,
        where,
        output_throughput=take("output_throughput"),
        concurrency=take("concurrency"),
        max_concurrency=take("max_concurrency"),
        accept_length=take(
            "accept_length" if tool is BenchmarkTool.SGLANG_SERVING else "spec_decode_acceptance_length"
        ),
        mean_tpot_ns=take.time("mean_tpot_ms", NS_PER_MS),
    )


def step_wall(result: BenchmarkResult, *, running: float | None = None) -> Wall:
    """Derive the wall-clock time of one step.

    The first that applies: a step that the tool timed itself; ``running * accept / throughput`` with the given batch;
    ``TPOT * accept``, which pays neither for the queue nor for the run's ramp and tail; ``running * accept /
    throughput`` with the one batch, or else with the client's concurrency, which counts queued requests as running.

    Parameters
    ----------
    result
        The benchmark's result.
    running
        Requests that the server ran at once, as its log says.

    Raises
    ------
    ConfigError
        If the result does not hold enough for a step time, or `running` is no positive number.

    Examples
    --------
    >>> result = BenchmarkResult(BenchmarkTool.VLLM_SERVING, "r.json", output_throughput=28.0, mean_tpot_ns=285_000_000)
    >>> step_wall(result).step_ns
    285000000
    >>> step_wall(result, running=8).step_ns
    285714286
    """
    if running is not None and not _LEAST <= running <= _MOST:
        raise ConfigError(f"requests at once: expected a number above 0, found {running!r}", where=result.where)
    accept = result.accept_length or 1.0
    origin = f"{result.tool}, {result.where}"
    emitted = "" if result.accept_length is None else f" x accept length {accept:g}"
    if result.decode_step_ns is not None:
        return Wall(result.decode_step_ns, f"median decode step ({origin})")
    if running is None and result.mean_tpot_ns is not None:
        return Wall(round(result.mean_tpot_ns * accept), f"mean time per output token{emitted} ({origin})")
    guesses = (
        (running, "requests at once, as given"),
        (result.batch, "requests in the batch"),
        (result.concurrency, "requests in flight, queue included"),
        (result.max_concurrency, "requests in flight at most, queue included"),
    )
    for requests, what in guesses:
        if requests is not None and result.output_throughput is not None:
            step_ns = round(requests * accept / result.output_throughput * NS_PER_S)
            rate = f"{result.output_throughput:g} tokens/s"
            return Wall(step_ns, f"{requests:g} {what}{emitted} / {rate} ({origin})")
    raise ConfigError(
        "no step time follows from this benchmark result",
        where=result.where,
        hint="it needs mean_tpot_ms, or output_throughput and the number of requests that ran at once",
    )


def _text(path: str) -> str:
    try:
        size = Path(path).stat().st_size
        if size > MAX_BYTES:
            raise ConfigError(f"a benchmark result of {size} bytes is over the limit of {MAX_BYTES}", where=path)
        return Path(path).read_bytes().decode("utf-8-sig", "replace")
    except OSError as exc:
        raise ConfigError(f"cannot read the benchmark result: {exc.strerror}", where=path) from exc


def _last_run(path: str, text: str) -> tuple[str, Mapping[str, object]]:
    """Return the last object of a JSON document, a list of them, or JSON Lines, and where it stands."""
    runs = list(_runs(path, text))
    if not runs:
        raise TraceFormatError("an empty benchmark result", where=path)
    where, run = runs[-1]
    if not isinstance(run, dict):
        raise TraceFormatError(f"expected a JSON object, found {kind_of(run)}", where=where, hint=_TOOLS)
    return where, run


def _runs(path: str, text: str) -> Iterator[tuple[str, object]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        yield from _lines(path, text)
        return
    if isinstance(document, list):
        yield from ((f"{path}, item {index}", run) for index, run in enumerate(document))
    else:
        yield path, document


def _lines(path: str, text: str) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                yield where, json.loads(line)
            except (ValueError, RecursionError) as exc:
                raise TraceFormatError(
                    "not JSON", where=where, hint="the file may be cut off or still growing"
                ) from exc


def _tool_of(run: Mapping[str, object]) -> BenchmarkTool | None:
    if "median_decode_latency" in run:
        return BenchmarkTool.SGLANG_ONE_BATCH
    if "output_throughput" not in run:
        return None
    if "batch_size" in run:
        return BenchmarkTool.SGLANG_ONE_BATCH_SERVER
    if "total_token_throughput" in run or "endpoint_type" in run:
        return BenchmarkTool.VLLM_SERVING
    return BenchmarkTool.SGLANG_SERVING if "request_throughput" in run else None


@dataclass(frozen=True, slots=True)
class _Taker:
    """Takes positive numbers out of a run; null and 0 stand for "not measured".

    Numbers beyond any measurement are refused, so that no quotient of two overflows.
    """

    run: Mapping[str, object]
    where: str

    def __call__(self, key: str) -> float | None:
        value = self.run.get(key)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            if value == 0:
                return None
            if _LEAST <= value <= _MOST:
                return float(value)
        raise ConfigError(f"{key}: expected a number above 0, found {str(value)[:40]!r}", where=self.where)

    def time(self, key: str, unit_ns: int) -> int | None:
        value = self(key)
        return None if value is None else round(value * unit_ns)

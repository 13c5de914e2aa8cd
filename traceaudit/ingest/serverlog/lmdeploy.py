"""Lines of LMDeploy's stats logger, the older (like vLLM's) and the newer form."""

import re

from traceaudit.ingest.serverlog.collect import Collected, Line
from traceaudit.ingest.serverlog.items import count_of, items_in, number_of
from traceaudit.ingest.serverlog.prefix import Clock, clock_in, process_in
from traceaudit.model.serverlines import Sample, SampleKind, Software

__all__ = ["MARKERS", "read"]

MARKERS = (b"Avg thr (in/out):", b"Unfinished:")
ENGINE = re.compile(r"\[[^\]]{0,40}? (Engine \d{1,6}|DP\d{1,6})\]")
NUMBER = r"(\d{1,12}(?:\.\d{1,6})?)"
RATES = re.compile(rf"Avg thr \(in/out\): {NUMBER} / {NUMBER} tokens/s")
SERVER = re.compile(r"Server \(succeeded/failed/routed/waiting\): (\d{1,12}) / (\d{1,12}) / (\d{1,12}) / (\d{1,12})")
BATCH = re.compile(r"Engine \(running/waiting\): (\d{1,12}) / (\d{1,12})")
USAGE = re.compile(r"KV cache(?: usage)?: (\d{1,3}(?:\.\d{1,6})?)%")


def read(line: Line, into: Collected) -> bool:
    """Take what the line says; False if it is no line of LMDeploy."""
    start = line.text.find("Avg ")
    head = line.text[: max(start, 0)]
    engine = match[1] if (match := ENGINE.search(head)) else ""
    clock = clock_in(head)
    if rates := RATES.search(line.text):
        return _newer(line, engine, clock, rates, into)
    items = items_in(line.text[max(start, 0) :])
    running = count_of(items, "Running")
    if running is None or "Unfinished" not in items:
        return False
    rate = number_of(items, "Avg generation throughput")
    prompt = number_of(items, "Avg prompt throughput")
    _take(line, engine, clock, (running, count_of(items, "Waiting")), (prompt, rate), into)
    return True


def _newer(line: Line, engine: str, clock: Clock | None, rates: re.Match[str], into: Collected) -> bool:
    batch = BATCH.search(line.text)
    if batch is None:
        return False
    server = SERVER.search(line.text)
    waiting = int(batch[2]) + (int(server[4]) if server else 0)
    _take(line, engine, clock, (int(batch[1]), waiting), (float(rates[1]), float(rates[2])), into)
    return True


def _take(
    line: Line,
    engine: str,
    clock: Clock | None,
    requests: tuple[int, int | None],
    rates: tuple[float | None, float | None],
    into: Collected,
) -> None:
    usage = USAGE.search(line.text)
    sample = Sample(
        kind=SampleKind.STATS,
        software=Software.LMDEPLOY,
        line=line.ref(),
        process=process_in(line.text),
        engine=engine,
        running=requests[0],
        queue=requests[1],
        cache_frac=float(usage[1]) / 100 if usage else None,
        tokens_per_second=rates[1],
        accept_length=number_of(items_in(line.text), "Mean acceptance length"),
        prefill=(rates[0] or 0) > 0,
    )
    into.sample(sample, clock)

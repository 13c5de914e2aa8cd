"""Iteration lines of TensorRT-LLM's PyTorch backend (``print_iter_log: true``).

``prev_device_step_time`` belongs to the iteration before, and holds the wait after an iteration that had nothing to
do: it is given to the row before, and only where no request came or went around it.
"""

import re

from traceaudit.ingest.serverlog.collect import Collected, Line, Speaker
from traceaudit.ingest.serverlog.items import count_of, items_in
from traceaudit.ingest.serverlog.prefix import clock_in, process_in
from traceaudit.model.serverlines import EventKind, Sample, SampleKind, Software
from traceaudit.units import NS_PER_S, ms_to_ns

__all__ = ["MARKERS", "read"]

MARKERS = (b"currank_total_requests", b"max_batch_size")
ITERATION = re.compile(r"\biter ?= ?(\d{1,15}), ")
REQUESTS = re.compile(r"currank_total_requests ?= ?(\d{1,12})/(\d{1,12})")
TIME = re.compile(r"\b(host_step_time|prev_device_step_time|elapsed_time) ?= ?(\d{1,9}(?:\.\d{1,20})?)(ms|s)\b")
STAMP = re.compile(r"timestamp ?= ?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)")
USAGE = re.compile(r"kv_cache_util ?= ?(\d(?:\.\d{1,9})?)")
BATCH_LIMIT = re.compile(r"\bmax_batch_size['\"]?(?:=|: ?)(\d{1,9})\b")


def read(line: Line, into: Collected) -> bool:
    """Take what the line says; False if it is no line of TensorRT-LLM."""
    start = ITERATION.search(line.text)
    requests = REQUESTS.search(line.text)
    if start is None or requests is None:
        return _other(line, into)
    items = items_in(line.text[start.start() :])
    context = count_of(items, "num_ctx_requests")
    running = count_of(items, "num_scheduled_requests")
    if running is None:  # before num_scheduled_requests; generation tokens are padded to a graph's size
        running = count_of(items, "num_ctx_requests", "num_generation_tokens")
    if running is None:
        return False
    speaker = Speaker(Software.TRTLLM, process_in(line.text[: start.start()]), f"rank {count_of(items, 'rank') or 0}")
    times = {name: _ns(value, unit) for name, value, unit in TIME.findall(line.text)}
    usage = USAGE.search(line.text)
    stamp = STAMP.search(line.text)
    sample = Sample(
        kind=SampleKind.ITERATION,
        software=Software.TRTLLM,
        line=line.ref(),
        process=speaker.process,
        engine=speaker.engine,
        running=running,
        queue=count_of(items, "num_unscheduled"),
        cache_frac=float(usage[1]) if usage else None,
        step_tokens=count_of(items, "num_generation_tokens"),
        host_step_ns=times.get("host_step_time", times.get("elapsed_time")),
        iteration=int(start[1]),
        prefill=bool(context) if context is not None else None,
        requests=(int(requests[1]), int(requests[2])),
    )
    _give_back(sample, speaker, times.get("prev_device_step_time"), into)
    into.sample(sample, clock_in(stamp[1]) if stamp else clock_in(line.text[: start.start()]))
    return True


def _give_back(sample: Sample, speaker: Speaker, device_ns: int | None, into: Collected) -> None:
    before = into.previous(speaker)
    if before is None or device_ns is None:
        return
    if before.running > 0 and sample.running > 0 and before.requests == sample.requests:
        into.amend(speaker.process, speaker.engine, step_ns=device_ns)


def _ns(value: str, unit: str) -> int:
    return ms_to_ns(value) if unit == "ms" else int(float(value) * NS_PER_S)


def _other(line: Line, into: Collected) -> bool:
    match = BATCH_LIMIT.search(line.text)
    if match is None or not re.search(r"\[TRT-LLM\]|TensorRT-LLM", line.text):
        return False
    speaker = Speaker(Software.TRTLLM, process_in(line.text))
    into.event(line, speaker, EventKind.START)
    into.setting(line, speaker, "running_cap", int(match[1]))
    return True

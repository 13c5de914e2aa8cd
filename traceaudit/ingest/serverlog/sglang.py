"""Lines of SGLang's scheduler, 0.3.6 to 0.5.23.

The order of the items, the separator after ``batch`` and the rank tags changed many times; nothing here depends on
them. Two processes that write at once may leave two messages in one line: each begins at its own clock.
"""

import re
from collections.abc import Iterator

from traceaudit.ingest.serverlog.collect import Collected, Line, Speaker
from traceaudit.ingest.serverlog.items import count_of, items_in, list_maximum, number_of, truth_of
from traceaudit.ingest.serverlog.prefix import Clock, clock_in, process_in
from traceaudit.model.serverlines import EventKind, Sample, SampleKind, Software

__all__ = ["MARKERS", "read"]

MARKERS = (
    b"Decode batch",
    b"Prefill batch",
    b"server_args=",
    b"ServerArgs(",
    b"max_total_num_tokens=",
    b"#retracted_reqs:",
    b"max_running_requests to ",
    b"Capture ",
)
PREFIX = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)((?: [A-Z_]{1,12}\d{1,6})*)\]")
RANK = re.compile(r"([A-Z_]+)(\d+)")
BATCH = re.compile(r"(Decode|Prefill) batch(?: ?\[(\d{1,15})\])?")
ARGUMENT = re.compile(r"\b(dp_size|tp_size|max_running_requests|decode_log_interval|cuda_graph_max_bs)=(\d{1,12})\b")
RETRACTED = re.compile(r"#retracted_reqs: ?(\d{1,9})")
CAPPED = re.compile(r"Setting max_running_requests to (\d{1,12})")
CAPTURE = re.compile(r"Capture [\w ]*graph.*?\bbs=? ?\[([\d, ]+)\]")
ARGUMENTS = {
    "dp_size": "dp_size",
    "tp_size": "tp_size",
    "max_running_requests": "running_cap_given",
    "decode_log_interval": "log_interval",
    "cuda_graph_max_bs": "graph_max_batch",
}
WAITING_ELSEWHERE = ("#prealloc-req", "#transfer-req", "#host-receive-req")
NOT_THE_POOL = ("pre-allocated usage", "cpu token usage")


def read(line: Line, into: Collected) -> bool:
    """Take what the line says; False if it is no line of SGLang."""
    taken = False
    for head, ranks, body in _messages(line.text):
        numbers = {tag: int(number) for tag, number in RANK.findall(ranks)}
        speaker = Speaker(
            Software.SGLANG,
            process_in(head),
            f"DP{numbers['DP']}" if "DP" in numbers else "",
            tuple(numbers.get(tag, 0) for tag in ("PP", "ATTN_CP", "TP", "EP")),
        )
        if batch := BATCH.search(body):
            taken |= _batch(line, speaker, batch, clock_in(head) or clock_in(body[: batch.start()]), into)
        else:
            taken |= _other(line, speaker, body, into)
    return taken


def _messages(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what stands before each message with its clock, the ranks, and the message."""
    prefixes = list(PREFIX.finditer(text))
    if not prefixes:
        start = match.start() if (match := BATCH.search(text)) else 0
        yield text[:start], "", text[start:]
        return
    outer = text[: prefixes[0].start()]
    for prefix, following in zip(prefixes, [*prefixes[1:], None], strict=True):
        yield outer + prefix[1], prefix[2], text[prefix.end() : following.start() if following else len(text)]


def _batch(line: Line, speaker: Speaker, batch: re.Match[str], clock: Clock | None, into: Collected) -> bool:
    items = items_in(batch.string[batch.end() :])
    running = count_of(items, "#running-req")
    if running is None:
        return False
    usages = [number_of(items, name) for name in items if name.endswith("usage") and name not in NOT_THE_POOL]
    decode = batch[1] == "Decode"
    sample = Sample(
        kind=SampleKind.DECODE if decode else SampleKind.PREFILL,
        software=Software.SGLANG,
        line=line.ref(),
        process=speaker.process,
        engine=speaker.engine,
        rank=speaker.rank,
        running=running,
        queue=count_of(items, "#queue-req"),
        transfer=count_of(items, *WAITING_ELSEWHERE),
        cache_frac=max((usage for usage in usages if usage is not None), default=None),
        cache_tokens=count_of(items, "#token" if "#token" in items else "#full token"),
        tokens_per_second=number_of(items, "gen throughput (token/s)"),
        accept_length=number_of(items, "accept len"),
        graph=truth_of(items, " graph") if decode else None,
        iteration=int(batch[2]) if batch[2] else None,
        prefill=None if decode else True,
        retracted=count_of(items, "#retracted-req"),
    )
    into.sample(sample, clock)
    return True


def _other(line: Line, speaker: Speaker, body: str, into: Collected) -> bool:
    if "server_args=" in body or "ServerArgs(" in body:
        into.event(line, speaker, EventKind.START)
        for name, value in ARGUMENT.findall(body):
            into.setting(line, speaker, ARGUMENTS[name], int(value))
    elif "max_total_num_tokens=" in body:
        items = items_in(body)
        into.setting(line, speaker, "cache_tokens", count_of(items, "max_total_num_tokens"))
        into.setting(line, speaker, "running_cap", count_of(items, "max_running_requests"))
    elif match := RETRACTED.search(body):
        into.event(line, speaker, EventKind.RETRACTION, int(match[1]))
    elif match := CAPPED.search(body):
        into.setting(line, speaker, "running_cap_given", int(match[1]))
    elif match := CAPTURE.search(body):
        into.setting(line, speaker, "graph_max_batch", list_maximum(match[1]))
    else:
        return False
    return True

"""Lines of vLLM, V0 and V1 to 0.33.

The stats line is a snapshot of the last scheduler step beside means over the interval (10 s). The acceptance length
of speculation stands in a line of its own that follows; ``Iteration`` lines give the time of single steps.
"""

import re

from traceaudit.ingest.serverlog.collect import Collected, Line, Speaker
from traceaudit.ingest.serverlog.items import count_of, items_in, list_maximum, number_of
from traceaudit.ingest.serverlog.prefix import clock_in, process_in
from traceaudit.model.serverlines import EventKind, Sample, SampleKind, Software
from traceaudit.units import ms_to_ns

__all__ = ["MARKERS", "read"]

MARKERS = (
    b"Avg generation throughput:",
    b"SpecDecoding metrics:",
    b"Speculative metrics:",
    b"iteration elapsed time:",
    b"KV cache size:",
    b"is preempted by",
    b"non-default args:",
    b"LLM engine (v",
    b"max_num_seqs",
)
ENGINE = re.compile(r"Engine (\d{1,6}): ")
CORE = re.compile(r"\bEngineCore_(?:DP)?(\d{1,6})\b")  # names the process; its lines often lack "Engine 000"
AGGREGATED = re.compile(r"(\d{1,6}) Engines Aggregated: ")
STATS = re.compile(r"Avg prompt throughput: .{1,60}?, Avg generation throughput: ")
USAGE = re.compile(r"\w+ KV cache usage: (\d{1,3}(?:\.\d{1,6})?)%")
FETCH = re.compile(r"KV fetch: (\d{1,9}) waiting to start, (\d{1,9}) in progress, (\d{1,9}) completed waiting")
ITERATION = re.compile(r"Iteration\((\d{1,15})\): .{1,200}?iteration elapsed time: (\d{1,9}(?:\.\d{1,9})?) ms")
WORDS = re.compile(r"(?<![\w.])(\d{1,12}) ([a-z]+ [a-z]+)(?=,|$)")
CACHE = re.compile(r"KV cache size: ([\d,]{1,20}) tokens")
ARGUMENT = re.compile(r"\b(max_num_seqs|data_parallel_size|tensor_parallel_size)'?(?:=|: )(\d{1,9})\b")
SIZES = re.compile(r"cudagraph_capture_sizes'?(?:=|: )\[([\d, ]+)\]")
ARGUMENTS = {"max_num_seqs": "running_cap", "data_parallel_size": "dp_size", "tensor_parallel_size": "tp_size"}


def read(line: Line, into: Collected) -> bool:
    """Take what the line says; False if it is no line of vLLM."""
    text = line.text
    aggregated = AGGREGATED.search(text)
    named = ENGINE.search(text) or CORE.search(text)
    engine = "aggregated" if aggregated else f"Engine {named[1]:0>3}" if named else ""
    speaker = Speaker(Software.VLLM, process_in(text), engine)
    if match := STATS.search(text):
        return _stats(line, speaker, match, int(aggregated[1]) if aggregated else 1, into)
    if match := ITERATION.search(text):
        return _iteration(line, speaker, match, into)
    if "SpecDecoding metrics:" in text or "Speculative metrics:" in text:
        into.amend(speaker.process, engine or "*", accept_length=_accept_length(text))
        return True
    return _other(line, speaker, into)


def _stats(line: Line, speaker: Speaker, match: re.Match[str], pieces: int, into: Collected) -> bool:
    text = line.text[match.start() :]
    items = items_in(text)
    running = count_of(items, "Running")
    if running is None or "Unfinished" in items:  # the latter is LMDeploy
        return False
    usage = USAGE.search(text)
    fetch = FETCH.search(text)
    sample = Sample(
        kind=SampleKind.STATS,
        software=Software.VLLM,
        line=line.ref(),
        process=speaker.process,
        engine=speaker.engine,
        running=running,
        queue=count_of(items, "Waiting", "Pending", "Swapped"),
        transfer=sum(map(int, fetch.groups())) if fetch else None,
        cache_frac=float(usage[1]) / 100 if usage else None,
        tokens_per_second=number_of(items, "Avg generation throughput"),
        prefill=(number_of(items, "Avg prompt throughput") or 0) > 0,
        retracted=count_of(items, "Preemptions"),
        pieces=max(1, pieces),
    )
    into.sample(sample, clock_in(line.text[: match.start()]))
    return True


def _iteration(line: Line, speaker: Speaker, match: re.Match[str], into: Collected) -> bool:
    words = _by_words(match[0])
    running = count_of(words, "context requests", "generation requests")
    if running is None:
        return False
    usage = USAGE.search(line.text)
    sample = Sample(
        kind=SampleKind.ITERATION,
        software=Software.VLLM,
        line=line.ref(),
        process=speaker.process,
        engine=speaker.engine,
        running=0 if "(dummy)" in line.text else running,
        cache_frac=float(usage[1]) / 100 if usage else None,
        step_ns=ms_to_ns(match[2]) or None,
        iteration=int(match[1]),
        prefill=bool(count_of(words, "context requests")),
        step_tokens=count_of(words, "generation tokens"),
    )
    into.sample(sample, clock_in(line.text[: match.start()]))
    return True


def _by_words(text: str) -> dict[str, str]:
    """Return ``8 generation requests`` items by their words."""
    return {words: number for number, words in WORDS.findall(text)}


def _accept_length(text: str) -> float | None:
    items = items_in(text)
    mean = number_of(items, "Mean acceptance length")
    if mean is not None:
        return mean
    # V0: emitted tokens per verification, of which there were drafted / tokens per draft.
    drafted = number_of(items, "Number of draft tokens")
    emitted = number_of(items, "Number of emitted tokens")
    each = number_of(items, "Number of speculative tokens")
    return emitted * each / drafted if drafted and emitted and each else None


def _other(line: Line, speaker: Speaker, into: Collected) -> bool:
    text = line.text
    if "is preempted by" in text:
        into.event(line, speaker, EventKind.RETRACTION, 1)
    elif match := CACHE.search(text):
        digits = match[1].replace(",", "")
        into.setting(line, speaker, "cache_tokens", int(digits) if digits else None)
    elif "LLM engine (v" in text or ARGUMENT.search(text) or SIZES.search(text):
        if "LLM engine (v" in text or "non-default args:" in text:
            into.event(line, speaker, EventKind.START)
        for name, value in ARGUMENT.findall(text):
            into.setting(line, speaker, ARGUMENTS[name], int(value))
        sizes = SIZES.search(text)
        into.setting(line, speaker, "graph_max_batch", list_maximum(sizes[1]) if sizes else None)
    else:
        return False
    return True

"""From paths to a `ServerLog`: every line goes to the readers of the engines until one takes it."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from traceaudit.errors import TraceAuditError, TraceFormatError
from traceaudit.ingest import prometheus
from traceaudit.ingest.serverlog import lmdeploy, sglang, trtllm, vllm
from traceaudit.ingest.serverlog.blocks import Blocks
from traceaudit.ingest.serverlog.collect import Collected, Line
from traceaudit.ingest.serverlog.files import FileContent, expand, joined
from traceaudit.ingest.serverlog.lines import LineCount, clean, lines_of
from traceaudit.model.serverlines import Sample, SampleKind, ServerLog, ServerSource, Software

__all__ = ["read_server_log"]

READERS: tuple[Callable[[Line, Collected], bool], ...] = (sglang.read, vllm.read, lmdeploy.read, trtllm.read)
MARKER = re.compile(b"|".join(map(re.escape, chain(sglang.MARKERS, vllm.MARKERS, lmdeploy.MARKERS, trtllm.MARKERS))))
HINT = (
    "expected lines such as 'Decode batch, #running-req: 8, …' (SGLang), 'Avg prompt throughput: …, Running: 8 reqs' "
    "(vLLM), 'iter = 120, … currank_total_requests = 8/16' (TensorRT-LLM), 'Avg thr (in/out): …' (LMDeploy), "
    "or Prometheus text"
)
Progress = Callable[[int, int | None], None]


def read_server_log(paths: Sequence[str], *, progress: Progress | None = None) -> ServerLog:
    """Read logs of one run: several processes, rotated parts, compressed or not, ``-`` for standard input.

    Raises
    ------
    TraceAuditError
        If a file cannot be read, or no line says anything about the batch.
    """
    names = expand(paths)
    if not names:
        raise TraceAuditError("no log given", hint=HINT)
    read = [_read_file(name, progress) for name in names]
    files, notes = joined(read)
    samples = [sample for file in files for sample in file.content.samples]
    if not any(sample.kind is not SampleKind.PREFILL for sample in samples):
        raise _nothing(read, names)
    samples, scraped = _logged_or_scraped(samples)
    software, others = _software(samples)
    own = [sample for sample in samples if sample.software is software]
    return ServerLog(
        software=software,
        sources=tuple(file.source for file in files),
        samples=tuple(_by_time(own)),
        settings=tuple(item for file in files for item in file.content.settings if item.software is software),
        events=tuple(item for file in files for item in file.content.events if item.software is software),
        others=others + scraped,
        notes=notes,
    )


def _read_file(path: str, progress: Progress | None) -> FileContent:
    count = LineCount()
    into = Collected()
    blocks = Blocks(path)
    rest = iter(blocks)
    first = next(rest, b"")
    stream = chain((first,), rest)
    if prometheus.looks_like(first):
        prometheus.read(path, stream, count, into)
    else:
        _read_lines(path, lines_of(_watched(stream, count, progress), count), into)
    source = ServerSource(path, count.lines, count.bytes_read, count.cut, into.duplicates, blocks.damage)
    if count.nuls and not into.samples:
        raise TraceFormatError("the file is binary, not a log", where=path, hint=HINT)
    return FileContent(source, into)


def _watched(blocks: Iterator[bytes], count: LineCount, progress: Progress | None) -> Iterator[bytes]:
    for block in blocks:
        yield block
        if progress is not None:
            progress(count.bytes_read, None)


def _read_lines(path: str, lines: Iterator[bytes], into: Collected) -> None:
    """Offer each line that holds a marker to the readers."""
    before = b""
    for number, raw in enumerate(lines, start=1):
        if not MARKER.search(raw):
            continue
        into.again = raw == before
        before = b"" if into.again else raw
        line = Line(path, number, clean(raw))
        for read in READERS:
            if read(line, into):
                break
    into.settle()


def _nothing(files: list[FileContent], names: tuple[str, ...]) -> TraceAuditError:
    lines = sum(file.source.lines for file in files)
    where = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    if any(file.content.samples for file in files):
        return TraceFormatError(
            "the log has prefill lines only, and they do not show a decode batch",
            where=where,
            hint="give the log of the decode server",
        )
    if not lines:
        return TraceFormatError("the log is empty", where=where, hint=HINT)
    cut = next((f"; {file.source.damage}" for file in files if file.source.damage), "")
    return TraceFormatError(f"none of {lines:,} lines tells the batch of a server{cut}", where=where, hint=HINT)


def _logged_or_scraped(samples: list[Sample]) -> tuple[list[Sample], int]:
    """Prefer what the server logged itself to what was scraped from it."""
    logged = [sample for sample in samples if sample.kind is not SampleKind.SCRAPE]
    if any(sample.kind is not SampleKind.PREFILL for sample in logged):
        return logged, len(samples) - len(logged)
    return samples, 0


def _software(samples: list[Sample]) -> tuple[Software, int]:
    votes = Counter(sample.software for sample in samples if sample.kind is not SampleKind.PREFILL)
    software, won = votes.most_common(1)[0]
    return software, votes.total() - won


def _by_time(samples: list[Sample]) -> list[Sample]:
    if any(sample.time_ns is None for sample in samples):
        return samples
    return sorted(samples, key=lambda sample: sample.time_ns or 0)

"""Scraped metrics of a server: Prometheus text, one scrape or many, or the answer of its query API.

Counters and histograms say something as differences of two scrapes. Of a single one, a histogram gives the mean since
the server started.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from traceaudit.errors import TraceFormatError
from traceaudit.ingest.metricnames import NAMES, MetricNames
from traceaudit.ingest.serverlog.collect import Collected, Line
from traceaudit.ingest.serverlog.lines import LineCount, clean, lines_of
from traceaudit.ingest.serverlog.prefix import Clock, clock_in
from traceaudit.model.serverlines import Sample, SampleKind
from traceaudit.units import NS_PER_MS, NS_PER_S

__all__ = ["looks_like", "read"]

METRIC = re.compile(
    r"([a-zA-Z_][\w:]{0,199})(?:\{(.*)\})?\s+([-+]?[\w.+-]{1,40})(?:\s+(-?\d{1,20}(?:\.\d{1,9})?))?\s*(?:#.*)?$"
)
LABEL = re.compile(r'(\w{1,100})="((?:\\.|[^"\\])*)"')
SNIFF = re.compile(
    rb'\A\s*(?:# (?:HELP|TYPE) \w|\{\s*"(?:status|data)"\s*:)'
    rb"|^(?:sglang|vllm|trtllm|lmdeploy|tgi)[:_]\w+(?:\{[^\n]*\})? ",
    re.MULTILINE,
)
JSON_LIMIT = 256 << 20
SECONDS_BELOW = 1e11  # a time stamp below this is in seconds, above in ms
LATEST_S = 4e9
IGNORED_SUFFIXES = ("_bucket", "_created")

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Value:
    value: float
    line: Line


@dataclass(slots=True)
class _Scrape:
    time_ns: int | None = None
    values: dict[tuple[str, Labels], _Value] = field(default_factory=dict)


def looks_like(head: bytes) -> bool:
    """Tell whether a file that begins so holds metrics.

    Examples
    --------
    >>> looks_like(b"# HELP vllm:num_requests_running Requests"), looks_like(b"[2026-01-02 03:04:05] Decode batch")
    (True, False)
    """
    return SNIFF.search(head[:1_000_000]) is not None


def read(path: str, blocks: Iterable[bytes], count: LineCount, into: Collected) -> None:
    """Take a sample of every engine from every scrape.

    Raises
    ------
    TraceFormatError
        If the input is the query API's JSON and damaged.
    """
    stream = iter(blocks)
    first = next(stream, b"")
    whole = chain((first,), stream)
    is_json = first.lstrip()[:1] == b"{"
    scrapes = _scrapes_of_json(path, whole, count) if is_json else _scrapes_of_text(path, lines_of(whole, count))
    before: dict[tuple[str, Labels], _Value] = {}
    before_ns: int | None = None
    for scrape in scrapes:
        for names in NAMES:
            _take(names, scrape, before, before_ns, into)
        if scrape.values:
            before, before_ns = scrape.values, scrape.time_ns


def _scrapes_of_text(path: str, lines: Iterable[bytes]) -> Iterator[_Scrape]:
    """Cut the text where a series comes again; where every line has its time, group by that."""
    by_time: dict[int, _Scrape] = {}
    current = _Scrape()
    for number, raw in enumerate(lines, start=1):
        line = Line(path, number, clean(raw))
        match = METRIC.match(line.text.strip())
        if match is None:
            if not line.text.startswith(("# HELP", "# TYPE")) and (clock := clock_in(line.text)):
                if current.values:
                    yield current
                current = _Scrape(clock.time_ns)
            continue
        value = _number(match[3])
        if value is None or match[1].endswith(IGNORED_SUFFIXES):
            continue
        key = (match[1].replace(":", "_"), tuple(sorted(LABEL.findall(match[2] or ""))))
        stamp = _stamp(float(match[4])) if match[4] else None
        if stamp is not None:
            by_time.setdefault(stamp, _Scrape(stamp)).values[key] = _Value(value, line)
            continue
        if key in current.values:
            yield current
            current = _Scrape()
        current.values[key] = _Value(value, line)
    if current.values:
        yield current
    yield from (by_time[time_ns] for time_ns in sorted(by_time))


def _scrapes_of_json(path: str, blocks: Iterable[bytes], count: LineCount) -> Iterator[_Scrape]:
    data = bytearray()
    for block in blocks:
        data += block
        if len(data) > JSON_LIMIT:
            raise TraceFormatError("the metrics are too many", where=path, hint="query a shorter time, or fewer series")
    count.bytes_read += len(data)
    count.lines += data.count(b"\n") + 1
    try:
        document = json.loads(bytes(data))
        series = document["data"]["result"]
        pairs = [
            (dict(item["metric"]), [(float(time), str(value)) for time, value in item.get("values") or [item["value"]]])
            for item in series
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise TraceFormatError(
            "the file is no answer of the Prometheus query API",
            where=path,
            hint="expected data.result with metric and values",
        ) from exc
    by_time: dict[int, _Scrape] = {}
    for metric, values in pairs:
        name = str(metric.pop("__name__", "")).replace(":", "_")
        key = (name, tuple(sorted((str(label), str(text)) for label, text in metric.items())))
        for time, text in values:
            value, stamp = _number(text), _stamp(time)
            if value is not None and stamp is not None and not name.endswith(IGNORED_SUFFIXES):
                line = Line(path, 1, f"{name} {text} at {time}")
                by_time.setdefault(stamp, _Scrape(stamp)).values[key] = _Value(value, line)
    yield from (by_time[time_ns] for time_ns in sorted(by_time))


def _take(
    names: MetricNames,
    scrape: _Scrape,
    before: Mapping[tuple[str, Labels], _Value],
    before_ns: int | None,
    into: Collected,
) -> None:
    for (name, labels), running in scrape.values.items():
        if name != names.running:
            continue
        now = _Series(scrape.values, before, labels)
        accept = now.gauge(names.accept_length) or None
        elapsed_s = (scrape.time_ns - before_ns) / NS_PER_S if scrape.time_ns and before_ns else None
        generated = now.difference(names.tokens)
        rate = now.gauge(names.rate)
        if not rate and generated is not None and elapsed_s:
            rate = generated / elapsed_s
        text = dict(labels)
        retracted = now.difference(names.retracted)
        sample = Sample(
            kind=SampleKind.SCRAPE,
            software=names.software,
            line=running.line.ref(),
            process=" ".join(text[label] for label in ("namespace", "pod", "instance") if label in text),
            engine=_engine(text),
            rank=tuple(int(text[label]) for label in ("pp_rank", "tp_rank") if text.get(label, "").isdecimal()),
            running=int(running.value),
            queue=_whole(now.gauge(names.queue)),
            cache_frac=max((use for use in map(now.gauge, names.cache) if use is not None), default=None),
            tokens_per_second=rate,
            accept_length=accept,
            graph=None if (graph := now.gauge(names.graph)) is None else graph > 0,
            step_ns=now.step_ns(names, accept),
            retracted=_whole(retracted),
        )
        into.sample(sample, Clock(scrape.time_ns, NS_PER_MS) if scrape.time_ns else None)


@dataclass(frozen=True, slots=True)
class _Series:
    """The series of one engine, now and at the scrape before."""

    now: Mapping[tuple[str, Labels], _Value]
    before: Mapping[tuple[str, Labels], _Value]
    labels: Labels

    def gauge(self, name: str | None) -> float | None:
        found = self.now.get((name, self.labels)) if name else None
        return None if found is None or found.value < 0 else found.value

    def difference(self, name: str | None) -> float | None:
        """Return what a counter gained; None without a scrape before, or where it was set back."""
        now, before = (side.get((name or "", self.labels)) for side in (self.now, self.before))
        return None if now is None or before is None or now.value < before.value else now.value - before.value

    def step_ns(self, names: MetricNames, accept: float | None) -> int | None:
        """Return the mean time between tokens of the interval, or since the start if there is one scrape only."""
        for name in names.latency:
            total, number = self.difference(f"{name}_sum"), self.difference(f"{name}_count")
            if not self.before:
                total, number = self.gauge(f"{name}_sum"), self.gauge(f"{name}_count")
            if total and number:
                each = accept if accept and names.latency_is_per_token else 1.0
                return min(round(total / number * each * NS_PER_S), 10**18)
        return None


def _engine(labels: Mapping[str, str]) -> str:
    for label, form in (("dp_rank", "DP{}"), ("engine", "Engine {:0>3}")):
        if labels.get(label, "").isdecimal():
            return form.format(labels[label])
    return ""


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e18 else None  # noqa: PLR2004  (no count or time of any server; NaN fails too)


def _stamp(time: float) -> int | None:
    seconds = time if abs(time) < SECONDS_BELOW else time / 1000
    return round(seconds * 1000) * NS_PER_MS if 0 < seconds < LATEST_S else None

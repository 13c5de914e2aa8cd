"""What the lines of a server log say, in one form for every engine and source.

A reader in `traceaudit.ingest` turns a line into a `Sample` (the batch at one instant), a `Setting` (a value that the
server was started with) or an `Event` (something that happened once). Each carries the `LineRef` that says so.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "Event",
    "EventKind",
    "LineRef",
    "Sample",
    "SampleKind",
    "ServerLog",
    "ServerLogOptions",
    "ServerSource",
    "Setting",
    "Software",
]


class Software(StrEnum):
    """The serving engine that wrote a line."""

    SGLANG = "sglang"
    VLLM = "vllm"
    TRTLLM = "trtllm"
    LMDEPLOY = "lmdeploy"
    TGI = "tgi"


class SampleKind(StrEnum):
    """What a sample was taken from.

    Only `DECODE`, `STATS`, `ITERATION` and `SCRAPE` count as samples of the batch; a `PREFILL` line shows the batch
    before the new requests join, and only serves to tell which intervals hold prefill work.
    """

    DECODE = "decode"
    STATS = "stats"
    ITERATION = "iteration"
    SCRAPE = "scrape"
    PREFILL = "prefill"


class EventKind(StrEnum):
    """Something that a server logs once."""

    START = "start"
    RETRACTION = "retraction"


@dataclass(frozen=True, slots=True)
class LineRef:
    """A line of an input.

    Attributes
    ----------
    path
        The file as the user gave it; ``-`` for standard input.
    number
        Counts from 1.
    text
        The line without colour codes, cut after 400 characters.
    """

    path: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of one engine at one instant, as one line (or scrape) gives it; None where the line does not say.

    Attributes
    ----------
    process
        What tells processes apart in an interleaved log: the text before the line's own prefix, or a process id.
    engine
        The data-parallel engine as the line names it, such as ``DP0`` or ``Engine 000``; "" if it does not.
    rank
        Numbers that tell lines of one engine apart (pipeline stage, tensor rank); the lowest speaks for the engine.
    time_ns
        Clock of the server without time zone, as ns since 1970; only differences mean something.
    time_resolution_ns
        Step of that clock.
    running
        Requests in the batch.
    queue
        Requests that wait for admission.
    transfer
        Requests that wait for cache space or for their cache to arrive (prefill and decode on separate servers).
    cache_frac
        Share of the KV cache in use, of the fullest pool.
    cache_tokens
        Slots of the KV cache that requests hold: the sum of their contexts, rounded up to pages.
    tokens_per_second
        Tokens generated per second since the previous line.
    accept_length
        Tokens per request and step under speculation, the bonus token included.
    graph
        Whether the last step was replayed from a graph.
    step_ns
        A step time that the line states itself; None where only the arithmetic gives one.
    host_step_ns
        Time of the host loop for one step.
    iteration
        Counter of passes.
    prefill
        Whether the pass (or the interval) of the sample holds prefill work, where the line tells.
    retracted
        Requests preempted or retracted so far or since the previous line.
    step_tokens
        Tokens that the pass works on: drafts, and padding to a graph's size, included.
    requests
        Requests fetched so far by this rank and by all ranks.
    pieces
        Number of engines that the sample sums, 1 normally.
    """

    kind: SampleKind
    software: Software
    line: LineRef
    process: str
    engine: str
    running: int
    rank: tuple[int, ...] = ()
    time_ns: int | None = None
    time_resolution_ns: int = 1_000_000_000
    queue: int | None = None
    transfer: int | None = None
    cache_frac: float | None = None
    cache_tokens: int | None = None
    tokens_per_second: float | None = None
    accept_length: float | None = None
    graph: bool | None = None
    step_ns: int | None = None
    host_step_ns: int | None = None
    iteration: int | None = None
    prefill: bool | None = None
    retracted: int | None = None
    step_tokens: int | None = None
    requests: tuple[int, int] | None = None
    pieces: int = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that the server was started with.

    Attributes
    ----------
    name
        One of ``dp_size``, ``tp_size``, ``running_cap`` (requests of one engine), ``running_cap_given`` (as on the
        command line, before it is divided), ``log_interval`` (decode passes from line to line), ``graph_max_batch``,
        ``cache_tokens``.
    """

    name: str
    value: int
    software: Software
    line: LineRef
    process: str
    engine: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; `count` is the number of requests concerned, where the line tells."""

    kind: EventKind
    software: Software
    line: LineRef
    process: str
    engine: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class ServerSource:
    """One input file: what was read from it.

    Attributes
    ----------
    path
        As given by the user; ``-`` for standard input.
    lines, bytes_read
        Lines, and bytes after decompression.
    cut_lines
        Lines longer than the reader takes, cut.
    duplicates
        Lines written twice in a row; one is kept.
    damage
        Why the lines end early: the compressed file is cut or damaged; None where it is whole.
    """

    path: str
    lines: int
    bytes_read: int
    cut_lines: int = 0
    duplicates: int = 0
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class ServerLog:
    """Everything that the inputs say, in the order of time.

    Attributes
    ----------
    software
        The engine that wrote most samples.
    others
        Samples of other engines, which were left out.
    """

    software: Software
    sources: tuple[ServerSource, ...]
    samples: tuple[Sample, ...]
    settings: tuple[Setting, ...] = ()
    events: tuple[Event, ...] = ()
    others: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerLogOptions:
    """Settings of `serverlog`.

    Attributes
    ----------
    expected
        Requests that should have run at once, over all engines.
    load
        Which load of the log to look at, counted from 1; None takes the one that ran `expected`, else the largest.
    """

    expected: int | None = None
    load: int | None = None

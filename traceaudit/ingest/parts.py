"""A block collected apart from the others, perhaps in another process, and its way back among them.

Codes mean something only beside their own lists, so joining gives them the numbers that they would have had if all
blocks had been collected in one place: what comes out is the same, down to the order.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traceaudit.ingest.collect import Collector
from traceaudit.ingest.columns import Codes
from traceaudit.ingest.decode import Block
from traceaudit.ingest.limits import Limits

__all__ = ["Part", "join", "part_of"]

_Columns = Mapping[str, npt.NDArray[Any]]


@dataclass(slots=True)
class Part:
    """What a `Collector` holds of one block."""

    device: _Columns
    host: _Columns
    sync: _Columns
    overhead: _Columns
    names: list[str]
    processes: list[Any]
    threads: list[Any]
    collectives: list[tuple[int, ...]]
    details: list[bytes]
    categories: Counter[tuple[str, str]]
    events: int
    dropped: int
    strangers: Counter[str]
    decimals: bool
    spans: list[tuple[int, int]]
    features: set[str]


def part_of(block: Block, *, details: bool) -> Part | None:
    """Collect a block on its own; None if some of its rows mean something only together with other blocks'."""
    alone = Collector(Limits(), "", details=details)
    alone.add(block)
    if not alone.separable:
        return None
    return Part(
        device=alone.device.take_all(),
        host=alone.host.take_all(),
        sync=alone.sync.take_all(),
        overhead=alone.overhead.take_all(),
        names=list(alone.names),
        processes=list(alone.processes),
        threads=list(alone.threads),
        collectives=list(alone.collectives),
        details=list(alone.details.texts),
        categories=alone.categories,
        events=alone.events,
        dropped=alone.dropped,
        strangers=alone.strangers,
        decimals=alone.decimals,
        spans=alone.spans,
        features=alone.features,
    )


def join(collected: Collector, part: Part) -> None:
    """Add a part to what was collected of the blocks before.

    Raises
    ------
    TraceFormatError
        If the rows go beyond the limits.
    """
    names = _numbers(collected.names, part.names)
    processes = _numbers(collected.processes, part.processes)
    threads = _numbers(collected.threads, part.threads)
    known = [tuple(int(names[code]) for code in row[:3]) + row[3:] for row in part.collectives]
    collectives = _numbers(collected.collectives, known)
    # The first text stands for none, and the column counts from the second.
    details = np.maximum(_numbers(collected.details.texts, part.details[1:]) - np.int32(1), -1)
    recoded = {"name": names, "process": processes, "thread": threads, "collective": collectives, "detail": details}
    for pieces, columns in (
        (collected.device, part.device),
        (collected.host, part.host),
        (collected.sync, part.sync),
        (collected.overhead, part.overhead),
    ):
        pieces.add(**{name: recoded[name][column] if name in recoded else column for name, column in columns.items()})
    collected.categories.update(part.categories)
    collected.events += part.events
    collected.dropped += part.dropped
    collected.strangers.update(part.strangers)
    collected.decimals |= part.decimals
    collected.spans += part.spans
    collected.features |= part.features
    collected.check_limits()


def _numbers(codes: Codes, keys: list[Any]) -> npt.NDArray[np.int32]:
    """Return the codes of keys, and -1 in the end, so that -1 stays -1."""
    return np.array([*map(codes.__getitem__, keys), -1], dtype=np.int32)

"""Several ranks of one run: who is absent, whose clock is off, who arrives late, and who waits inside its collectives.

Collectives are matched by order among those of one process group, name, type and size. Two facts carry everything else:
a collective that needs data of every rank cannot end on one of them before it has begun on all, and it ends on all of
them together. So clocks are aligned by ends, and what a rank spends in a collective beyond the rank that spends least
is waiting for the last one to arrive; no clock is needed for that.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from traceaudit.analyses.ranks.clocks import compare_clocks, meeting_of
from traceaudit.analyses.ranks.matching import match_members, members_of
from traceaudit.analyses.ranks.waiting import find_alone, find_waiting
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.trace import Trace

__all__ = ["compare_ranks", "spinning_alone"]


def compare_ranks(traces: Sequence[Trace], *, folder: bool = False) -> tuple[Finding, ...]:
    """Compare the ranks of one run.

    Where several files name the same rank, or there is one rank only, each rank is judged alone.

    Parameters
    ----------
    traces
        One trace for each file; a file may hold several ranks.
    folder
        The user gave a folder of ranks: a single file in it means that the others are lost. A single file given by
        itself was chosen, so that absent ranks are only mentioned.

    Returns
    -------
    tuple of Finding
        ``rank_missing``, ``rank_clock_offset``, ``rank_skew`` and ``spinning_collective``, with `impact_ns` as in their
        messages.
    """
    members = [member for trace in traces for member in members_of(trace)]
    places = Counter((member.rank, member.device) for member in members)
    matches = match_members(members) if max(places.values(), default=0) == 1 else []
    clocks = compare_clocks(members, [match for match in matches if match.call.group is not None])
    meetings = [meeting for match in matches if (meeting := meeting_of(match, members, clocks)) is not None]
    waiting = (*find_waiting(members, meetings), *find_alone(members, meetings))
    return (*_missing(traces, folder=folder), *clocks.findings, *waiting)


def spinning_alone(trace: Trace) -> tuple[Finding, ...]:
    """Find collective kernels that wait inside, from one trace alone.

    Kernels of one rank, device, group, collective, type and size are siblings; without metadata, those of one
    name, grid and block. One that takes more than 10 times the median of the others, and more than 1 ms, waits for a
    rank that this trace does not show; `impact_ns` is the time beyond that median. One finding a device.
    """
    return tuple(find_alone(list(members_of(trace)), []))


def _missing(traces: Sequence[Trace], *, folder: bool) -> Iterator[Finding]:
    given = {rank for trace in traces for rank in trace.ranks}
    world = max((trace.world_size or 0 for trace in traces), default=0)
    count = world - sum(0 <= rank < world for rank in given)
    if count <= 0 or not given:
        return
    missing = list(islice((rank for rank in range(world) if rank not in given), 9))
    chosen = len(traces) == 1 and not folder
    shown = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")  # noqa: PLR2004  (fits a line)
    yield Finding(
        "rank_missing",
        Severity.INFO if chosen else Severity.WARNING,
        f"{len(given)} of {world} ranks given; absent: {shown}",
        hint="waiting for an absent rank looks like communication" if chosen else "give the files of all ranks",
        count=count,
        rank=missing[0] if count == 1 else None,
    )

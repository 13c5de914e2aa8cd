"""Waiting inside collectives: for a peer that the traces show, or for one that they do not."""

from collections.abc import Iterator, Sequence

import numpy as np

from traceaudit.analyses.ranks.matching import Call, Match, Member, ms
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.schema import I64
from traceaudit.units import NS_PER_MS, NS_PER_US

__all__ = ["find_alone", "find_waiting"]

WAIT_FLOOR_NS = 250 * NS_PER_US
WAIT_FLOOR_OF_SPAN = 50
WAIT_FLOOR_OF_COMM = 10
"""Waiting counts from 250 µs, a 50th of the rank's span and a 10th of its time in matched collectives on: launches of
two ranks are never closer than some µs, and a collective shorter than that always waits a little."""

ALONE_FACTOR = 10
ALONE_FLOOR_NS = NS_PER_MS
"""Without peers, a kernel spins when it takes over 10 times the median of its siblings and over 1 ms: contention and
clock changes explain factors of two or three, and a short kernel is stretched by a single preemption."""

RARE = 10
"""Without metadata, NCCL's generic kernel and kernels of unknown grid may run collectives of any size: long ones are
judged by the others only where they are at most a tenth."""


def find_waiting(members: Sequence[Member], meetings: Sequence[Match]) -> Iterator[Finding]:
    """Report ranks that wait for others in matched collectives, and the one that they wait for."""
    waits, spent, caused, met, late = (np.zeros(len(members), np.int64) for _ in range(5))
    for match in meetings:
        columns = np.array(match.members)
        wait = match.dur_ns - match.dur_ns.min(axis=1, keepdims=True)
        last = columns[wait.argmin(axis=1)]
        waits[columns] += wait.sum(axis=0)
        spent[columns] += match.dur_ns.sum(axis=0)
        met[columns] += len(wait)
        np.add.at(caused, last, wait.max(axis=1))
        np.add.at(late, last, wait.max(axis=1) > 0)
    for index, member in enumerate(members):
        if _matters(int(waits[index]), int(spent[index]), member):
            yield Finding(
                "spinning_collective",
                Severity.WARNING,
                f"rank {member.rank} waits for other ranks {ms(int(waits[index]))} of its {ms(int(spent[index]))}"
                f" inside matched collectives ({met[index]})",
                hint="this is no transfer: look at what the late rank does",
                count=int(met[index]),
                impact_ns=int(waits[index]),
                rank=member.rank,
                device=member.device,
            )
    for index, member in enumerate(members):
        if caused[index] * 2 > caused.sum() and _matters(int(caused[index]), int(spent.max()), member):
            yield Finding(
                "rank_skew",
                Severity.WARNING,
                f"rank {member.rank} is the last to arrive at {late[index]} of {met[index]} collectives; others wait up"
                f" to {ms(int(caused[index]))} for it",
                hint="look at the host of this rank before the collectives: scheduling, input, another batch",
                count=int(late[index]),
                impact_ns=int(caused[index]),
                rank=member.rank,
                device=member.device,
            )


def _matters(waiting_ns: int, spent_ns: int, member: Member) -> bool:
    floors = (WAIT_FLOOR_NS, member.span_ns // WAIT_FLOOR_OF_SPAN, spent_ns // WAIT_FLOOR_OF_COMM)
    return waiting_ns >= max(floors)


def find_alone(members: Sequence[Member], meetings: Sequence[Match]) -> Iterator[Finding]:
    """Report kernels far longer than their siblings, on members whose collectives of that call met no peer."""
    met = {(index, match.call) for match in meetings for index in match.members}
    for index, member in enumerate(members):
        excess: list[int] = []
        worst, judged = "", 0
        for call, rows in member.calls.items():
            if (index, call) in met:
                continue
            judged += len(rows)
            over = _over_siblings(member.end_ns[rows] - member.start_ns[rows])
            if _of_any_size(call) and len(over) * RARE > len(rows):
                continue
            if over and max(over) > max(excess, default=0):
                worst = call.what
            excess += over
        if excess:
            yield Finding(
                "spinning_collective",
                Severity.WARNING,
                f"rank {member.rank} waits inside {len(excess)} of {judged} communication kernels: over {ALONE_FACTOR}"
                f" times as long as their siblings, {ms(sum(excess))} more in all",
                hint="give the traces of all ranks to see who is late",
                count=len(excess),
                impact_ns=sum(excess),
                rank=member.rank,
                device=member.device,
                examples=(f"{worst}: {ms(max(excess))} beyond its siblings",),
            )


def _of_any_size(call: Call) -> bool:
    return call.group is None and ("Generic" in call.what or call.shape == (-1, -1))


def _over_siblings(dur_ns: I64) -> list[int]:
    """Return the time beyond the (lower) median of the others, for each kernel far above it."""
    ordered = np.sort(dur_ns)
    middle = (len(ordered) - 2) // 2  # of all but one, when the one lies above it
    if middle < 0:
        return []
    siblings = int(ordered[middle])
    return [
        int(value) - siblings for value in ordered[middle + 1 :] if value > max(ALONE_FACTOR * siblings, ALONE_FLOOR_NS)
    ]

"""Collectives of several ranks, matched with each other."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceaudit.model.schema import I64, Kind, OpType
from traceaudit.model.trace import Trace
from traceaudit.units import NS_PER_MS, NS_PER_US

__all__ = ["CLOCK_AGREEMENT_NS", "Call", "Match", "Member", "match_members", "members_of", "ms"]

CLOCK_AGREEMENT_NS = 100 * NS_PER_US
"""Clocks closer than this agree: ends of one collective differ by the last hop of its transfer, tens of µs at most."""

MAX_SHIFT = 256
"""Captures of two ranks may begin this many collectives apart; beyond it their order is not matched."""

_NEEDS_EVERYONE = re.compile(
    r"(?i)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all(?!v)|cross_device_reduce|barrier|lamport"
)


class Call(NamedTuple):
    """What makes collectives comparable.

    `group` is None for kernels without a collective's metadata; `what` is then the kernel, and `shape` its blocks and
    threads, which grow with the message.
    """

    group: str | None
    what: str
    dtype: str = ""
    in_elements: int = -1
    out_elements: int = -1
    group_size: int = -1
    shape: tuple[int, int] = (-1, -1)


@dataclass(frozen=True, slots=True)
class Member:
    """Communication kernels of one device of one rank, in order of start; `calls` gives the rows of each call."""

    rank: int
    device: int
    origin_ns: int | None
    span_ns: int
    start_ns: I64
    end_ns: I64
    calls: Mapping[Call, npt.NDArray[np.intp]]


@dataclass(frozen=True, slots=True)
class Match:
    """The same collectives on several members: one row for each collective, one column for each member."""

    call: Call
    members: tuple[int, ...]
    start_ns: I64
    end_ns: I64

    @property
    def dur_ns(self) -> I64:
        """Time that each member spends in each collective."""
        return self.end_ns - self.start_ns


def members_of(trace: Trace) -> Iterator[Member]:
    """Yield each rank and device of the trace that runs communication kernels."""
    ops = trace.ops
    comm = np.flatnonzero((ops.kind == Kind.COMM) & (ops.op_type == OpType.KERNEL))
    if not len(comm):
        return
    collective = ops.collective[comm]
    plain = [np.where(collective < 0, column[comm], -1) for column in (ops.name, ops.grid_x, ops.block_x)]
    kinds, kind_of = np.unique(np.stack([collective, *plain]), axis=1, return_inverse=True)
    calls = [_call(trace, *map(int, kind)) for kind in kinds.T]
    for rank, device in np.unique(np.stack([ops.rank[comm], ops.device[comm]]), axis=1).T:
        mine = (ops.rank[comm] == rank) & (ops.device[comm] == device)
        everything = (ops.rank == rank) & (ops.device == device)
        rows, kind = comm[mine], kind_of.reshape(-1)[mine]
        yield Member(
            rank=int(rank),
            device=int(device),
            origin_ns=trace.source.origin_ns,
            span_ns=int(ops.end_ns[everything].max() - ops.start_ns[everything].min()),
            start_ns=ops.start_ns[rows],
            end_ns=ops.end_ns[rows],
            calls={calls[code]: np.flatnonzero(kind == code) for code in np.unique(kind)},
        )


def _call(trace: Trace, row: int, name: int, blocks: int, threads: int) -> Call:
    if row < 0:
        return Call(None, trace.names[name], shape=(blocks, threads))
    table = trace.collectives

    def text(code: int) -> str:
        return "" if code < 0 else trace.names[code]

    return Call(
        text(int(table.group[row])),
        text(int(table.name[row])),
        text(int(table.dtype[row])),
        int(table.in_elements[row]),
        int(table.out_elements[row]),
        int(table.group_size[row]),
    )


def match_members(members: Sequence[Member]) -> list[Match]:
    """Match the collectives that need every rank; broadcasts and transfers between two may end before others begin."""
    found = []
    for call in dict.fromkeys(call for member in members for call in member.calls):
        present = tuple(index for index, member in enumerate(members) if call in member.calls)
        # More members than the group has ranks: several groups share the name.
        too_many = 0 < call.group_size < len(present)
        if len(present) > 1 and not too_many and _NEEDS_EVERYONE.search(call.what):
            match = _aligned(call, present, members)
            if match is not None:
                found.append(match)
    return found


def _aligned(call: Call, present: tuple[int, ...], members: Sequence[Member]) -> Match | None:
    """Match by order; where counts differ, captures began or ended apart, and the absolute ends find the shift."""
    rows = {index: members[index].calls[call] for index in present}
    fewest = min(present, key=lambda index: len(rows[index]))
    count = len(rows[fewest])
    ends = _absolute(members[fewest], members[fewest].end_ns[rows[fewest]])
    for index in present:
        spare = len(rows[index]) - count
        if spare == 0:
            continue
        others = _absolute(members[index], members[index].end_ns[rows[index]])
        if ends is None or others is None or spare > MAX_SHIFT:
            return None
        shift = min(range(spare + 1), key=lambda shift: _distance(others[shift : shift + count] - ends))
        rows[index] = rows[index][shift : shift + count]
    return Match(
        call,
        present,
        np.stack([members[index].start_ns[rows[index]] for index in present], axis=1),
        np.stack([members[index].end_ns[rows[index]] for index in present], axis=1),
    )


def _distance(differences: I64) -> tuple[int, int]:
    """Rank a shift: a clock offset moves all ends alike, so their spread comes first, then their size."""
    middle = int(np.median(differences))
    return int(np.median(np.abs(differences - middle))) // CLOCK_AGREEMENT_NS, abs(middle)


def _absolute(member: Member, times_ns: I64) -> I64 | None:
    return None if member.origin_ns is None else times_ns + member.origin_ns


def ms(time_ns: int) -> str:
    """Write a time for a message."""
    return f"{time_ns / NS_PER_MS:.3f} ms"

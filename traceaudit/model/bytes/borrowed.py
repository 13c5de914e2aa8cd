"""Bytes borrowed from another run of the same model: a replay has no shapes, the eager run of it has.

The kernel sequence of each step is aligned, in order, with that of one step of the other run: first by name and grid,
then, inside what differs, by name alone. A kernel with another grid works on something else, so it gets no bytes; only
generated kernels do, whose blocks each process sizes for itself.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceaudit.model.alignment import align
from traceaudit.model.bytes.generated import is_generated
from traceaudit.model.bytes.shares import OpWork, OpWorkBuilder
from traceaudit.model.bytes.work import Work
from traceaudit.model.identity import identity_of
from traceaudit.model.schema import I64, DeviceOps, OpType

__all__ = ["Borrowed", "OtherRun", "borrow"]

Token = tuple[str, tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class OtherRun:
    """A device of another trace with what its ops move; `step` is each op's step."""

    names: tuple[str, ...]
    ops: DeviceOps
    step: I64
    work: OpWork
    path: str


@dataclass(frozen=True, slots=True)
class Borrowed:
    """How much of the replay found its like.

    Attributes
    ----------
    ops, matched, by_name_only
        Kernels without bytes of their own, those matched, and of these the generated ones whose grids differ.
    other_grid
        Kernels that only have their like with another grid, and so no bytes.
    time_ns, matched_ns
        Their op time.
    """

    ops: int
    matched: int
    by_name_only: int
    time_ns: int
    matched_ns: int
    other_grid: int = 0


def borrow(into: OpWorkBuilder, names: tuple[str, ...], ops: DeviceOps, step: I64, other: OtherRun) -> Borrowed:
    """Give kernels without bytes those of the kernels in the same place of the other run."""
    reference = _reference(other)
    wanted = _tokens(other.names, other.ops, reference)
    is_open = into.open()
    pairs: dict[tuple[Token, ...], list[tuple[int, int, bool]]] = {}
    by_name = matched = matched_ns = other_grid = 0
    duration = ops.end_ns - ops.start_ns
    for members in _sequences(ops, step):
        tokens = _tokens(names, ops, members)
        found = pairs.get(tuple(tokens))
        if found is None:
            found = pairs[tuple(tokens)] = list(_pairs(tokens, wanted))
        for place, at, same_grid in found:
            op, source = members[place], reference[at]
            work = other.work.of(source)
            if work is None or not is_open[op]:
                continue
            if not same_grid and not is_generated(names[int(ops.name[op])]):
                other_grid += 1
                continue
            _copy(into, op, other, source, _renamed(work, other.path, same_grid=same_grid))
            matched += 1
            matched_ns += int(duration[op])
            by_name += not same_grid
    candidates = is_open & (ops.op_type == OpType.KERNEL)
    return Borrowed(int(candidates.sum()), matched, by_name, int(duration[candidates].sum()), matched_ns, other_grid)


def _copy(into: OpWorkBuilder, op: int, other: OtherRun, source: int, work: Work) -> None:
    flop = int(other.work.flop[source])
    into.put(
        op,
        work,
        int(other.work.read_bytes[source]),
        int(other.work.write_bytes[source]),
        None if flop < 0 else flop,
    )


def _renamed(work: Work, path: str, *, same_grid: bool) -> Work:
    how = "by name and grid" if same_grid else "by name alone: its grid is another one there"
    return replace(work, assumption="; ".join(filter(None, (work.assumption, f"shapes of {path}, matched {how}"))))


def _reference(other: OtherRun) -> list[int]:
    """Return the ops of one step of the other run, of the sequence that most of its steps have."""
    sequences = list(_sequences(other.ops, other.step))
    tokens = [tuple(_tokens(other.names, other.ops, members)) for members in sequences]
    if not sequences:
        return []
    usual, _ = max(Counter(tokens).items(), key=lambda item: (item[1], len(item[0])))
    return sequences[tokens.index(usual)]


def _sequences(ops: DeviceOps, step: I64) -> Iterator[list[int]]:
    """Yield the kernels of each step, in order of start."""
    for number in np.unique(step).tolist():
        members = np.flatnonzero((step == number) & (ops.op_type == OpType.KERNEL))
        if len(members):
            yield members.tolist()


def _tokens(names: tuple[str, ...], ops: DeviceOps, members: Sequence[int]) -> list[Token]:
    identity = {code: identity_of(names[code]) for code in np.unique(ops.name[members]).tolist()}
    return [
        (identity[int(ops.name[op])], (int(ops.grid_x[op]), int(ops.grid_y[op]), int(ops.grid_z[op]))) for op in members
    ]


def _pairs(target: Sequence[Token], wanted: Sequence[Token]) -> Iterator[tuple[int, int, bool]]:
    """Yield places in the target, their like, and whether the grids agree too."""
    for place, at, block in _aligned(target, wanted, 0, 0):
        if block is None:
            yield place, at, True
            continue
        inside = target[block[0] : block[1]], wanted[block[2] : block[3]]
        names = [[(name, (0, 0, 0)) for name, _ in side] for side in inside]
        for near, like, rest in _aligned(names[0], names[1], block[0], block[2]):
            if rest is None:
                yield near, like, False


def _aligned(
    target: Sequence[Token], wanted: Sequence[Token], target_offset: int, wanted_offset: int
) -> Iterator[tuple[int, int, tuple[int, int, int, int] | None]]:
    """Yield matched places, and the blocks that differ."""
    codes: dict[Token, int] = {}
    sides = [[codes.setdefault(token, len(codes)) for token in side] for side in (target, wanted)]
    blocks = align(sides[0], sides[1])
    if blocks is None:
        return
    at_target = at_wanted = 0
    for block in blocks:
        for place in range(at_target, block.base_start):
            yield place + target_offset, at_wanted + place - at_target + wanted_offset, None
        yield (
            -1,
            -1,
            (
                block.base_start + target_offset,
                block.base_end + target_offset,
                block.head_start + wanted_offset,
                block.head_end + wanted_offset,
            ),
        )
        at_target, at_wanted = block.base_end, block.head_end
    for place in range(at_target, len(target)):
        yield place + target_offset, at_wanted + place - at_target + wanted_offset, None

"""Alignment of two sequences of kernels: the fewest insertions and removals that turn one into the other.

Myers' greedy algorithm, O(length x differences). Ties are broken the same way whichever sequence comes first, so that
an alignment seen from the other side is the same alignment.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MOST_DIFFERENCES", "Block", "align"]

MOST_DIFFERENCES = 2000
"""Sequences that differ by more are not aligned: they are other programs, and time and memory grow with the square."""


@dataclass(frozen=True, slots=True)
class Block:
    """Where the sequences differ: ``base[base_start:base_end]`` stands where ``head[head_start:head_end]`` does."""

    base_start: int
    base_end: int
    head_start: int
    head_end: int


def align(base: Sequence[int], head: Sequence[int], *, most: int = MOST_DIFFERENCES) -> tuple[Block, ...] | None:
    """Return the blocks in which two sequences differ, in order; None if they differ by more than `most` tokens.

    Examples
    --------
    >>> align([1, 2, 3, 4], [1, 9, 3, 4])
    (Block(base_start=1, base_end=2, head_start=1, head_end=2),)
    >>> align([1, 2], [1, 2])
    ()
    """
    if (len(head), list(head)) < (len(base), list(base)):
        mirrored = align(head, base, most=most)
        if mirrored is None:
            return None
        return tuple(Block(block.head_start, block.head_end, block.base_start, block.base_end) for block in mirrored)
    begin = _common_prefix(base, head)
    end = _common_suffix(base[begin:], head[begin:])
    matches = _matches(base[begin : len(base) - end], head[begin : len(head) - end], most)
    if matches is None:
        return None
    return _blocks(begin, matches, len(base) - end, len(head) - end)


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    for position, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return position
    return min(len(left), len(right))


def _common_suffix(left: Sequence[int], right: Sequence[int]) -> int:
    return _common_prefix(left[::-1], right[::-1])


def _blocks(offset: int, matches: list[tuple[int, int]], base_end: int, head_end: int) -> tuple[Block, ...]:
    """Return what lies between the matched positions (relative to `offset`)."""
    blocks: list[Block] = []
    at_base = at_head = offset
    for in_base, in_head in [*((b + offset, h + offset) for b, h in matches), (base_end, head_end)]:
        if in_base > at_base or in_head > at_head:
            blocks.append(Block(at_base, in_base, at_head, in_head))
        at_base, at_head = in_base + 1, in_head + 1
    return tuple(blocks)


def _matches(base: Sequence[int], head: Sequence[int], most: int) -> list[tuple[int, int]] | None:
    """Return the matched positions of a longest common subsequence."""
    limit = min(len(base) + len(head), most)
    # By diagonal (position in base minus position in head): how far into base one gets.
    furthest = array("q", [0]) * (2 * limit + 3)
    centre = limit + 1
    history: list[array[int]] = []
    for differences in range(limit + 1):
        history.append(furthest[centre - differences - 1 : centre + differences + 2])
        for diagonal in range(-differences, differences + 1, 2):
            at = centre + diagonal
            down = _goes_down(furthest, at, diagonal, differences)
            in_base = furthest[at + 1] if down else furthest[at - 1] + 1
            in_head = in_base - diagonal
            while in_base < len(base) and in_head < len(head) and base[in_base] == head[in_head]:
                in_base, in_head = in_base + 1, in_head + 1
            furthest[at] = in_base
            if in_base >= len(base) and in_head >= len(head):
                return _walk_back(history, len(base), len(head))
    return None


def _goes_down(furthest: "array[int]", at: int, diagonal: int, differences: int) -> bool:
    """Tell whether the next step on a diagonal takes a token of head; else it takes one of base."""
    if abs(diagonal) == differences:
        return diagonal == -differences
    return furthest[at - 1] < furthest[at + 1]


def _walk_back(history: "list[array[int]]", in_base: int, in_head: int) -> list[tuple[int, int]]:
    """Follow the steps taken from the end to the start, and collect the matches on the way."""
    matches: list[tuple[int, int]] = []
    for differences in range(len(history) - 1, 0, -1):
        furthest = history[differences]
        diagonal = in_base - in_head
        at = differences + 1 + diagonal
        down = _goes_down(furthest, at, diagonal, differences)
        from_base = furthest[at + 1] if down else furthest[at - 1]
        from_head = from_base - (diagonal + 1 if down else diagonal - 1)
        first = (from_base, from_head + 1) if down else (from_base + 1, from_head)
        while (in_base, in_head) != first:
            in_base, in_head = in_base - 1, in_head - 1
            matches.append((in_base, in_head))
        in_base, in_head = from_base, from_head
    matches += [(in_base - back, in_head - back) for back in range(1, in_base + 1)]
    return matches[::-1]

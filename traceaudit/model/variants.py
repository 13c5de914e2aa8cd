"""Kernels of one step that only a compiler's number tells apart, matched between two sides by where they stand.

A recompilation may number them in another order, add one or drop one. The sequences of both sides, aligned without the
numbers, show which stands where.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from traceaudit.model.alignment import align
from traceaudit.model.identity import family_of, placed
from traceaudit.model.runs import KernelSamples, RunSummary, Side

__all__ = ["placed_like"]


def placed_like(base: Side, head: Side) -> Side:
    """Return head with the places that its kernels have in base; those that base lacks get places of their own."""
    in_base, in_head = _identities(base), _identities(head)
    families = {family_of(name) for name in (*in_base, *in_head) if family_of(name) != name}
    if not families:
        return head
    found = _by_position(base, head, families)
    for family in families:
        left_base = [name for name in in_base if family_of(name) == family and name not in found.values()]
        left_head = [name for name in in_head if family_of(name) == family and name not in found]
        if len(left_base) == len(left_head):
            found.update(zip(left_head, left_base, strict=True))
            continue
        free = _free(family, {*in_base, *found.values()})
        found.update((name, next(free)) for name in left_head)
    return replace(head, runs=tuple(_renamed(run, found) for run in head.runs))


def _by_position(base: Side, head: Side, families: set[str]) -> dict[str, str]:
    """Return for kernels of head those of base that stand in their places most often."""
    old, new = _sequence(base), _sequence(head)
    numbers = {name: number for number, name in enumerate(sorted({family_of(name) for name in (*old, *new)}))}
    blocks = align([numbers[family_of(name)] for name in old], [numbers[family_of(name)] for name in new])
    if blocks is None:
        return {}
    votes: Counter[tuple[str, str]] = Counter()
    at_base = at_head = 0
    for until, next_base, next_head in (
        *((block.base_start, block.base_end, block.head_end) for block in blocks),
        (len(old), 0, 0),
    ):
        matched = until - at_base
        votes.update(zip(old[at_base:until], new[at_head : at_head + matched], strict=True))
        at_base, at_head = next_base, next_head
    found: dict[str, str] = {}
    for (in_base, in_head), _ in sorted(votes.items(), key=lambda item: (-item[1], sorted(item[0]))):
        if family_of(in_head) in families and in_head not in found and in_base not in found.values():
            found[in_head] = in_base
    return found


def _free(family: str, taken: set[str]) -> Iterator[str]:
    """Yield identities of a family that are not taken."""
    place = 0
    while True:
        place += 1
        if placed(family, place) not in taken:
            yield placed(family, place)


def _identities(side: Side) -> list[str]:
    return sorted({kernel.key[0] for run in side.runs for kernel in run.kernels})


def _sequence(side: Side) -> Sequence[str]:
    run = side.runs[(len(side.runs) - 1) // 2]
    return [run.kernels[row].key[0] for row in run.sequence]


def _renamed(run: RunSummary, names: dict[str, str]) -> RunSummary:
    def renamed(kernel: KernelSamples) -> KernelSamples:
        name, shape = kernel.key
        return replace(kernel, key=(names.get(name, name), shape))

    return replace(run, kernels=tuple(renamed(kernel) for kernel in run.kernels))

"""Which kernel of one side is which of the other: by identity and shape, then by position in the step.

Positions are compared by aligning the two sequences of kernels. Where the alignment shows one kernel in the place of
another, always and nowhere else, it was renamed; where it shows several, they were fused, split or replaced as a group.
A kernel that has no other in its place was fused all the same if one close by, which only the other side has, names its
ops.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from traceaudit.model.alignment import Block, align
from traceaudit.model.identity import NO_SHAPE, family_of
from traceaudit.model.opwords import op_words
from traceaudit.model.runs import KernelKey, KernelSamples, RunSummary, Side

__all__ = ["Group", "Pair", "Pairing", "pair_kernels"]

_Label = KernelKey
_ANY_SHAPE = NO_SHAPE - 1

CLOSE = 4
"""Kernels between one that is gone and the one that took its work, at most: a product or two with their helpers."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A kernel of both sides (or of one): its keys there, and whether its name changed.

    Attributes
    ----------
    base, head
        Keys of the samples that make it up; empty where the side does not have it.
    """

    base: frozenset[KernelKey]
    head: frozenset[KernelKey]
    renamed: bool = False
    group: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Kernels that took the place of others; `kind` is ``fused``, ``split`` or ``replaced``."""

    kind: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """All kernels of two sides, each in one pair."""

    pairs: tuple[Pair, ...]
    groups: tuple[Group, ...]


def pair_kernels(base: Side, head: Side) -> Pairing:
    """Match the kernels of two sides."""
    label = _labels(base, head)
    in_base, in_head = _keys_by_label(base, label), _keys_by_label(head, label)
    both = in_base.keys() & in_head.keys()
    lost, found = in_base.keys() - both, in_head.keys() - both
    replaced = _Replaced(base, head, label, frozenset(lost), frozenset(found)) if lost or found else None
    renamed = replaced.renamed() if replaced is not None else {}
    members, groups = replaced.groups(renamed, ()) if replaced is not None else ({}, ())
    if replaced is not None:
        explained = {*renamed, *renamed.values(), *members}
        absorbed = replaced.absorbed(frozenset(lost - explained), frozenset(found - explained))
        if absorbed:
            joined = {name for pair in absorbed for name in pair}
            renamed = {old: new for old, new in renamed.items() if not {old, new} & joined}
            members, groups = replaced.groups(renamed, absorbed)
    pairs = [Pair(in_base[name], in_head[name], group=members.get(name)) for name in sorted(both)]
    pairs += [Pair(in_base[name], in_head[renamed[name]], renamed=True) for name in sorted(renamed)]
    taken = {*renamed, *renamed.values()}
    pairs += [Pair(in_base[name], frozenset(), group=members.get(name)) for name in sorted(lost - taken)]
    pairs += [Pair(frozenset(), in_head[name], group=members.get(name)) for name in sorted(found - taken)]
    return Pairing(tuple(pairs), groups)


def _labels(base: Side, head: Side) -> Callable[[KernelKey], _Label]:
    """Keep the shapes of an identity apart where both sides have the same ones, each as often in every step."""
    shapes = [_steady_shapes(side) for side in (base, head)]
    apart = {
        name
        for name in shapes[0].keys() & shapes[1].keys()
        if shapes[0][name] is not None and shapes[0][name] == shapes[1][name]
    }
    return lambda key: key if key[0] in apart else (key[0], _ANY_SHAPE)


def _steady_shapes(side: Side) -> dict[str, frozenset[int] | None]:
    """Return the shape classes of each identity, None where launches vary from step to step or run to run."""
    launches: dict[KernelKey, set[float]] = {}
    for run in side.runs:
        for kernel in run.kernels:
            launches.setdefault(kernel.key, set()).update(kernel.step_launches)
    holders = Counter(kernel.key for run in side.runs for kernel in run.kernels)
    shapes: dict[str, frozenset[int] | None] = {}
    for (name, shape), counts in launches.items():
        steady = len(counts) == 1 and holders[name, shape] == len(side.runs)
        known = shapes.get(name, frozenset())
        shapes[name] = known | {shape} if steady and known is not None else None
    return shapes


def _keys_by_label(side: Side, label: Callable[[KernelKey], _Label]) -> dict[_Label, frozenset[KernelKey]]:
    found: dict[_Label, set[KernelKey]] = {}
    for run in side.runs:
        for kernel in run.kernels:
            found.setdefault(label(kernel.key), set()).add(kernel.key)
    return {name: frozenset(keys) for name, keys in found.items()}


class _Replaced:
    """What the alignment of two steps shows of kernels that only one side has."""

    def __init__(
        self,
        base: Side,
        head: Side,
        label: Callable[[KernelKey], _Label],
        lost: frozenset[_Label],
        found: frozenset[_Label],
    ) -> None:
        self.lost, self.found = lost, found
        self.base, self.kind_of_base = _typical_sequence(base, label)
        self.head, self.kind_of_head = _typical_sequence(head, label)
        numbers = {name: number for number, name in enumerate(sorted({*self.base, *self.head}))}
        blocks = align([numbers[name] for name in self.base], [numbers[name] for name in self.head])
        self.blocks: tuple[Block, ...] = blocks or ()

    def renamed(self) -> dict[_Label, _Label]:
        """Return the pairs that always stand in each other's place, and nowhere else."""
        votes: Counter[tuple[_Label, _Label]] = Counter()
        for block in self.blocks:
            old = [name for name in self._of_base(block) if name in self.lost]
            new = [name for name in self._of_head(block) if name in self.found]
            if len(old) == len(new) and block.base_end - block.base_start == block.head_end - block.head_start:
                votes.update(zip(old, new, strict=True))
        in_base, in_head = Counter(self.base), Counter(self.head)
        return {
            old: new
            for (old, new), count in votes.items()
            if count == in_base[old] == in_head[new] and self.kind_of_base[old] == self.kind_of_head[new]
        }

    def absorbed(self, lost: frozenset[_Label], found: frozenset[_Label]) -> list[tuple[_Label, _Label]]:
        """Return kernels of one side alone with the kernel of the other side that does their work as well.

        It runs as often, always close to where they stood, and its name speaks of all their ops.
        """
        to_head = [(block.base_start, block.base_end, block.head_start, block.head_end) for block in self.blocks]
        to_base = [(*block[2:], *block[:2]) for block in to_head]
        return [
            *_absorbed(lost, self.base, self.found, self.head, to_head),
            *((old, new) for new, old in _absorbed(found, self.head, self.lost, self.base, to_base)),
        ]

    def groups(
        self, renamed: dict[_Label, _Label], absorbed: Sequence[tuple[_Label, _Label]]
    ) -> tuple[dict[_Label, int], tuple[Group, ...]]:
        """Join what stands in each other's place, or was absorbed, directly or through others, into groups."""
        in_base, in_head = Counter(self.base), Counter(self.head)
        links = _Links()
        for block in self.blocks:
            old, new = self._of_base(block), self._of_head(block)
            lost = [name for name in old if name in self.lost and name not in renamed]
            found = [name for name in new if name in self.found and name not in renamed.values()]
            # Kernels of both sides belong to a group when it changes how often they are launched.
            shared = [
                name
                for name in (*old, *new)
                if name not in self.lost and name not in self.found and in_base[name] != in_head[name]
            ]
            if (lost and (found or any(name in new for name in shared))) or (
                found and any(name in old for name in shared)
            ):
                links.join([*lost, *found, *shared])
        for pair in absorbed:
            links.join(pair)
        members: dict[_Label, int] = {}
        groups: list[Group] = []
        for number, names in enumerate(links.components()):
            members.update(dict.fromkeys(names, number))
            before, after = sum(in_base[name] for name in names), sum(in_head[name] for name in names)
            groups.append(Group("fused" if after < before else "split" if after > before else "replaced"))
        return members, tuple(groups)

    def _of_base(self, block: Block) -> Sequence[_Label]:
        return self.base[block.base_start : block.base_end]

    def _of_head(self, block: Block) -> Sequence[_Label]:
        return self.head[block.head_start : block.head_end]


def _absorbed(
    alone: frozenset[_Label],
    ours: Sequence[_Label],
    candidates: frozenset[_Label],
    theirs: Sequence[_Label],
    blocks: Sequence[tuple[int, int, int, int]],
) -> Iterator[tuple[_Label, _Label]]:
    """Yield each kernel of our side alone with the nearest candidate of the other side that names its ops."""
    places, like = _places(ours, blocks), _where(theirs)
    for name, at in sorted(_where(ours).items()):
        ops = op_words(family_of(name[0]))
        if name not in alone or not ops:
            continue
        near = []
        for other in sorted(candidates):
            there = like.get(other, [])
            if len(there) == len(at) and ops < op_words(family_of(other[0])):
                apart = [abs(places[one] - two) for one, two in zip(at, there, strict=True)]
                near += [(max(apart), other)] if max(apart) <= CLOSE else []
        if near:
            yield name, min(near)[1]


def _where(sequence: Sequence[_Label]) -> dict[_Label, list[int]]:
    found: dict[_Label, list[int]] = {}
    for place, name in enumerate(sequence):
        found.setdefault(name, []).append(place)
    return found


def _places(sequence: Sequence[_Label], blocks: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """Return for each position of one sequence where it lies in the other; within a block, where that begins."""
    places: list[int] = []
    offset = 0
    for start, end, like_start, like_end in (*blocks, (len(sequence), len(sequence), 0, 0)):
        places += range(len(places) + offset, start + offset)
        places += [like_start] * (end - start)
        offset = like_end - end
    return places


class _Links:
    """Sets of labels that belong together."""

    def __init__(self) -> None:
        self._parent: dict[_Label, _Label] = {}

    def join(self, names: Iterable[_Label]) -> None:
        roots = sorted({self._root(name) for name in names})
        for root in roots[1:]:
            self._parent[root] = roots[0]

    def components(self) -> list[list[_Label]]:
        found: dict[_Label, list[_Label]] = {}
        for name in sorted(self._parent):
            found.setdefault(self._root(name), []).append(name)
        return [found[root] for root in sorted(found)]

    def _root(self, name: _Label) -> _Label:
        self._parent.setdefault(name, name)
        while self._parent[name] != name:
            name = self._parent[name]
        return name


def _typical_sequence(side: Side, label: Callable[[KernelKey], _Label]) -> tuple[tuple[_Label, ...], dict[_Label, str]]:
    """Return the sequence of the run in the middle of the side's order, as labels, and the kind of each."""
    run: RunSummary = side.runs[(len(side.runs) - 1) // 2]
    kernels: Sequence[KernelSamples] = run.kernels
    sequence = tuple(label(kernels[row].key) for row in run.sequence)
    return sequence, {label(kernel.key): kernel.kind for kernel in kernels}

"""Kernels that only move activations: what they move, from their names, their places in a layer and their grids."""

import re
from dataclasses import dataclass

from traceaudit.model.bytes.geometry import Walk, walk_of
from traceaudit.model.bytes.kernelclass import KernelClass
from traceaudit.model.bytes.rolework import ACTIVATION_BYTES, RoleWork
from traceaudit.model.bytes.work import Work
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.ffn import Dense
from traceaudit.model.llm.workload import Workload

__all__ = ["Place", "Sizes", "activation"]

MANY_BLOCKS = 8
"""From here on the last block, which may be almost empty, is an eighth of the elements at most."""

WIDEST_LOAD_ELEMENTS = 8
"""Of two bytes, in the 16 that a thread loads at once."""

_FLOATS = {2, 4}
_RESIDUAL = re.compile(r"(?i)fused_?add|add_?(?:rms|layer)|residual")
_PRODUCT = "MulFunctor"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kernel stands.

    Attributes
    ----------
    layer
        The layer of the last product.
    attending
        Whether the last product gave queries, keys or values, so that attention is still to come.
    ending
        Whether the last product gave the logits.
    """

    layer: int = 0
    attending: bool = False
    ending: bool = False


@dataclass(frozen=True, slots=True)
class Sizes:
    """Elements of one step's activations, by what they are."""

    model: Architecture
    workload: Workload

    @property
    def tokens(self) -> int:
        """Tokens that pass the model in the step."""
        return self.workload.tokens

    @property
    def hidden(self) -> float:
        """States between layers."""
        return self.tokens * self.model.hidden

    @property
    def logits(self) -> float:
        """Logits of one rank."""
        return self.workload.batch * self.model.vocab / self.workload.parallelism.tp

    def heads(self, layer: int) -> tuple[float, float]:
        """Return the elements of queries, and of keys; 0 where heads are not grouped so."""
        mixer = self.model.layers[layer].attention
        if not isinstance(mixer, GroupedQuery):
            return 0.0, 0.0
        tp = self.workload.parallelism.tp
        row = self.tokens * mixer.head_dim
        return row * mixer.heads / tp, row * max(1.0, mixer.kv_heads / tp)

    def written(self, layer: int) -> float:
        """Return the elements that a step adds to the cache."""
        mixer = self.model.layers[layer].attention
        if not isinstance(mixer, GroupedQuery):
            return 0.0
        kept = max(1.0, mixer.kv_heads / self.workload.parallelism.tp)
        return self.tokens * kept * (mixer.head_dim + mixer.value_dim)

    def row(self, layer: int) -> int:
        """Return the elements of one head, the width of rotary tables."""
        mixer = self.model.layers[layer].attention
        return mixer.head_dim if isinstance(mixer, GroupedQuery) else 0

    def width(self, layer: int) -> float:
        """Return the elements between gate and down."""
        net = self.model.layers[layer].ffn
        return self.tokens * net.width / self.workload.parallelism.tp if isinstance(net, Dense) else 0.0

    def normed(self, blocks: int, layer: int, *, attending: bool) -> tuple[float, float] | None:
        """Return the elements of a norm and of its weight: of states, or of heads where there are blocks for heads.

        Without a grid a norm between the projections and attention is of queries or keys, one cannot tell which.
        """
        queries, keys = self.heads(layer)
        row = self.row(layer)
        if not blocks and attending:
            return None
        each, rest = divmod(blocks, self.tokens)
        if row and each > 1 and not rest and blocks * row in {queries, keys, queries + keys}:
            return blocks * row, row
        return self.hidden, self.model.hidden

    def exactly(self, walk: Walk, layer: int) -> float | None:
        """Return the size in the model that a grid is just large enough for, None where none or several are."""
        queries, keys = self.heads(layer)
        width = self.width(layer)
        known = {self.hidden, queries, keys, queries + keys, (queries + keys) / 2, queries / 2, keys / 2}
        known |= {width, 2 * width, self.logits}
        fitting = [size for size in known if walk.elements - walk.block_elements < size <= walk.elements]
        return fitting[0] if len(fitting) == 1 else None


def activation(
    kind: KernelClass, text: str, blocks: int, threads: int, place: Place, roles: RoleWork, sizes: Sizes
) -> Work | None:
    """Return the work of a kernel that moves activations, None where neither name nor place nor grid tells.

    Parameters
    ----------
    kind, text
        Class and name.
    blocks, threads
        Blocks of the grid (0: not known), and threads of a block along x.
    place
        Where it stands.
    roles, sizes
        Of the model.
    """
    walk = walk_of(text, blocks, threads)
    if walk is not None:
        return _by_grid(walk, kind, text, blocks, place, roles, sizes)
    found = _by_name(kind, text, blocks, threads, place, sizes)
    if found is None or not found[0]:
        return None
    read, write, what = found
    return roles.activations(kind.value, read=read * ACTIVATION_BYTES, write=write * ACTIVATION_BYTES, what=what)


def _by_grid(
    walk: Walk, kind: KernelClass, text: str, blocks: int, place: Place, roles: RoleWork, sizes: Sizes
) -> Work | None:
    """Return the work of a kernel of PyTorch, whose grid shows its elements up to the last block."""
    exact = sizes.exactly(walk, place.layer) if blocks > 1 and walk.item_bytes in _FLOATS else None
    if exact is None and blocks < MANY_BLOCKS:
        return None
    size = (walk.elements if exact is None else exact) * walk.item_bytes
    read, what = walk.inputs * size, "elements by the grid" + (", up to the last block" if exact is None else "")
    if place.attending and exact in _rotated(sizes, place.layer) and walk.inputs > 1 and _PRODUCT in text:
        # Before attention, heads are multiplied by rows that they share: rotary tables, or the weight of their norm.
        read = size + sizes.tokens * sizes.row(place.layer) * walk.item_bytes
        what += ", times a row a token"
    return roles.activations("" if kind is KernelClass.OTHER else kind.value, read=read, write=size, what=what)


def _rotated(sizes: Sizes, layer: int) -> set[float]:
    queries, keys = sizes.heads(layer)
    return {queries, keys, queries + keys}


def _by_name(
    kind: KernelClass, text: str, blocks: int, threads: int, place: Place, sizes: Sizes
) -> tuple[float, float, str] | None:
    """Return elements read and written by a kernel that engines or compilers name after what it does."""
    match kind:
        case KernelClass.NORM:
            size = sizes.normed(blocks, place.layer, attending=place.attending)
            if size is None:
                return None
            normed, weight = size
            times = 2 if _RESIDUAL.search(text) else 1
            found = times * normed + weight, times * normed, "each state and the weight once"
        case KernelClass.GATHER if not blocks or blocks * threads * WIDEST_LOAD_ELEMENTS >= sizes.model.hidden:
            found = sizes.hidden, sizes.hidden, "a row for each token"
        case KernelClass.SAMPLING if place.ending:
            found = sizes.logits, sizes.logits if "oftmax" in text else 0.0, "all logits"
        case KernelClass.ROTARY:
            found = sum(sizes.heads(place.layer)), sum(sizes.heads(place.layer)), "queries and keys"
        case KernelClass.CACHE_WRITE:
            found = sizes.written(place.layer), sizes.written(place.layer), "new keys and values"
        case KernelClass.ACTIVATION:
            found = 2 * sizes.width(place.layer), sizes.width(place.layer), "gate and up"
        case _:
            return None
    return found

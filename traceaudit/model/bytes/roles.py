"""Bytes of kernels without shapes, from the roles that they have in a known model.

Products and attention get theirs from the layer pattern (`layout`). Norms, rotary embedding, cache writes and the like
are known by their names and places; PyTorch's element by element kernels by their grids. What is none of these stays
unknown.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceaudit.model.bytes.geometry import walk_of
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.bytes.layout import Layout, Placed, Style, lay_out
from traceaudit.model.bytes.rolework import ACTIVATION_BYTES, RoleWork
from traceaudit.model.bytes.shares import OpWorkBuilder
from traceaudit.model.bytes.split import share_inputs
from traceaudit.model.bytes.work import Work
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.ffn import Dense
from traceaudit.model.llm.workload import Workload
from traceaudit.model.schema import I64, DeviceOps, Kind, OpType

__all__ = ["RoleMatch", "assign_roles"]

_PRODUCTS = (KernelClass.GEMM, KernelClass.EXPERTS, KernelClass.ATTENTION)


@dataclass(frozen=True, slots=True)
class RoleMatch:
    """How much of the trace the layer pattern explains.

    Attributes
    ----------
    products, unplaced
        Matrix products seen, and those without a role.
    style
        How the engine fuses them.
    layers
        Attention kernels of a whole step, as many as the model has layers if all is well.
    fits
        Whether a whole step shows the model's layers, or there is no whole step to tell; else no kernel got bytes.
    """

    products: int
    unplaced: int
    style: Style
    layers: int
    fits: bool = True


def assign_roles(
    into: OpWorkBuilder, names: tuple[str, ...], ops: DeviceOps, step: I64, model: Architecture, workload: Workload
) -> RoleMatch:
    """Give kernels without bytes those of their roles in the model; none where no whole step has the model's layers."""
    roles = RoleWork(model, workload)
    sizes = _Sizes(model, workload)
    layouts: dict[tuple[KernelClass, ...], Layout] = {}
    is_open = into.open()
    duration = ops.end_ns - ops.start_ns
    products = unplaced = layers = 0
    styles: dict[Style, int] = {}
    sequences = _sequences(ops, step)
    marks = _marks(sequences, names, ops, duration, len(model.layers))
    shown = [_layers_shown([names[int(ops.name[op])] for op in rows], marks) for rows, whole in sequences if whole]
    if shown and len(model.layers) not in shown:
        return RoleMatch(0, 0, Style(), max(shown), fits=False)
    for members, whole in sequences:
        texts = [names[int(ops.name[op])] for op in members]
        classes = _classes(texts, marks)
        layout = layouts.setdefault(tuple(classes), lay_out(classes, model, whole=whole))
        products += layout.products
        unplaced += layout.unplaced
        layers = max(layers, sum(kind is KernelClass.ATTENTION for kind in classes) if whole else 0)
        styles[layout.style] = styles.get(layout.style, 0) + layout.products
        for group, work in _works(members, texts, classes, layout, ops, roles, sizes):
            open_group = [op for op in group if is_open[op]]
            _put(into, open_group, work, names, ops, duration)
    return RoleMatch(products, unplaced, max(styles, key=lambda style: styles[style], default=Style()), layers)


def _sequences(ops: DeviceOps, step: I64) -> list[tuple[list[int], bool]]:
    """Return the kernels of each step in order, and whether the step is whole."""
    kernels = (ops.op_type == OpType.KERNEL) & (ops.kind == Kind.COMPUTE)
    found = ((np.flatnonzero((step == number) & kernels), number >= 0) for number in np.unique(step).tolist())
    return [(members.tolist(), whole) for members, whole in found if len(members)]


def _marks(
    sequences: Sequence[tuple[list[int], bool]], names: tuple[str, ...], ops: DeviceOps, duration: I64, layers: int
) -> frozenset[str]:
    """Return the kernels that mark layers: those of attention that a whole step runs as often as there are layers.

    Engines run other kernels on some layers than on others (windows), so several together may do so. Where no name
    speaks of attention, the longest kernel that runs once a layer and multiplies no weights does.
    """
    members = next((rows for rows, whole in sequences if whole), [])
    count: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    for op in members:
        text = names[int(ops.name[op])]
        count[text] += 1
        spent[text] += int(duration[op])
    chosen: list[str] = []
    for text, _ in spent.most_common():
        taken = sum(count[name] for name in chosen)
        if kernel_class(text) is KernelClass.ATTENTION and taken + count[text] <= layers:
            chosen.append(text)
    if sum(count[name] for name in chosen) == layers:
        return frozenset(_needed(chosen, count, layers))
    once = [text for text, _ in spent.most_common() if count[text] == layers and kernel_class(text) not in _PRODUCTS]
    others = [text for text in once if kernel_class(text) is KernelClass.OTHER]
    return frozenset(others[:1])


def _needed(chosen: Sequence[str], count: Counter[str], layers: int) -> Sequence[str]:
    """Return the one kernel that marks all layers alone, if there is one."""
    alone = [text for text in chosen if count[text] == layers]
    return alone[:1] or chosen


def _layers_shown(texts: Sequence[str], marks: frozenset[str]) -> int:
    """Return how many kernels mark layers, or else how many a name says to be attention."""
    marked = sum(text in marks for text in texts)
    return marked or sum(kernel_class(text) is KernelClass.ATTENTION for text in texts)


def _classes(texts: Sequence[str], marks: frozenset[str]) -> list[KernelClass]:
    """Return what each kernel is, with attention for the kernels that mark layers alone."""
    return [
        KernelClass.ATTENTION
        if text in marks
        else KernelClass.OTHER
        if kernel_class(text) is KernelClass.ATTENTION
        else kernel_class(text)
        for text in texts
    ]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Elements of one step's activations, by what they are."""

    model: Architecture
    workload: Workload

    @property
    def tokens(self) -> int:
        return self.workload.tokens

    @property
    def hidden(self) -> float:
        return self.tokens * self.model.hidden

    @property
    def logits(self) -> float:
        return self.workload.batch * self.model.vocab / self.workload.parallelism.tp

    def heads(self, layer: int) -> tuple[float, float]:
        """Return the elements of queries and keys, and of keys and values."""
        mixer = self.model.layers[layer].attention
        if not isinstance(mixer, GroupedQuery):
            return 0.0, 0.0
        tp = self.workload.parallelism.tp
        kept = max(1.0, mixer.kv_heads / tp)
        together = (mixer.heads / tp + kept) * mixer.head_dim
        return self.tokens * together, self.tokens * kept * (mixer.head_dim + mixer.value_dim)

    def normed(self, blocks: int, layer: int) -> float:
        """Return the elements of a norm: of each token's state, or of each head where there are blocks for heads."""
        mixer = self.model.layers[layer].attention
        each, rest = divmod(blocks, self.tokens)
        if isinstance(mixer, GroupedQuery) and each > 1 and not rest:
            tp = self.workload.parallelism.tp
            heads, kept = mixer.heads / tp, max(1.0, mixer.kv_heads / tp)
            if each in {heads, kept, heads + kept}:
                return blocks * mixer.head_dim
        return self.hidden

    def width(self, layer: int) -> float:
        """Return the elements between gate and down."""
        net = self.model.layers[layer].ffn
        return self.tokens * net.width / self.workload.parallelism.tp if isinstance(net, Dense) else 0.0


def _works(
    members: Sequence[int],
    texts: Sequence[str],
    classes: Sequence[KernelClass],
    layout: Layout,
    ops: DeviceOps,
    roles: RoleWork,
    sizes: _Sizes,
) -> list[tuple[list[int], Work]]:
    """Return the kernels of each piece of work: a product with its helpers, or a kernel alone."""
    found: list[tuple[list[int], Work]] = []
    groups: dict[Placed, int] = {}
    current: Placed | None = None
    layer = 0
    for place, op in enumerate(members):
        placed, kind = layout.roles.get(place), classes[place]
        if placed is not None:
            layer = layer if placed.layer is None else placed.layer
            current = placed
            work = roles.of(placed.role, placed.layer)
            if work is None:
                continue
            if placed in groups:
                found[groups[placed]][0].append(op)
            else:
                groups[placed] = len(found)
                found.append(([op], work))
        elif kind is KernelClass.HELPER and current in groups:
            found[groups[current]][0].append(op)
        else:
            current = None if kind in _PRODUCTS else current
            work = _activation(kind, texts[place], op, layer, ops, roles, sizes)
            if work is not None:
                found.append(([op], work))
    return found


def _activation(
    kind: KernelClass, text: str, op: int, layer: int, ops: DeviceOps, roles: RoleWork, sizes: _Sizes
) -> Work | None:
    """Return the work of a kernel that moves activations, None where neither name nor grid tells."""
    blocks = int(ops.grid_x[op]) * int(ops.grid_y[op]) * int(ops.grid_z[op])
    walk = walk_of(text, blocks, int(ops.block_x[op]))
    item = ACTIVATION_BYTES
    if walk is not None:
        size = walk.elements * walk.item_bytes
        return roles.activations(
            "" if kind is KernelClass.OTHER else kind.value,
            read=walk.inputs * size,
            write=size,
            what="elements by the grid, up to the last block",
        )
    together, cached = sizes.heads(layer)
    known = {
        KernelClass.NORM: (sizes.normed(blocks, layer) * item, sizes.normed(blocks, layer) * item, "a row a block"),
        KernelClass.GATHER: (sizes.hidden * item, sizes.hidden * item, "a row for each token"),
        KernelClass.SAMPLING: (sizes.logits * item, 0.0, "all logits"),
        KernelClass.ROTARY: (together * item, together * item, "queries and keys"),
        KernelClass.CACHE_WRITE: (cached * item, cached * item, "new keys and values"),
        KernelClass.ACTIVATION: (2 * sizes.width(layer) * item, sizes.width(layer) * item, "gate and up"),
    }.get(kind)
    if known is None or not known[0]:
        return None
    return roles.activations(kind.value, read=known[0], write=known[1], what=known[2])


def _put(
    into: OpWorkBuilder, group: list[int], work: Work, names: tuple[str, ...], ops: DeviceOps, duration: I64
) -> None:
    """Share a work among its kernels."""
    if not group:
        return
    texts = [names[int(ops.name[op])] for op in group]
    times = [int(duration[op]) for op in group]
    reads = share_inputs(work.read_bytes, texts, times)
    flops = None if work.flop is None else share_inputs(work.flop, texts, times)
    for place, op in enumerate(group):
        last = place == len(group) - 1
        into.put(op, work, reads[place], work.write_bytes if last else 0, None if flops is None else flops[place])

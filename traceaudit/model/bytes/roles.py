"""Bytes of kernels without shapes, from the roles that they have in a known model.

Products and attention get theirs from the layer pattern (`layout`). Norms, rotary embedding, cache writes and the like
are known by their names and places; PyTorch's element by element kernels by their grids. What is none of these stays
unknown.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceaudit.model.bytes.activations import Place, Sizes, activation
from traceaudit.model.bytes.expansion import expanded_elements, parts_copied
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.bytes.layout import HEAD, Layout, Placed, Style, lay_out
from traceaudit.model.bytes.rolework import RoleWork
from traceaudit.model.bytes.shares import OpWorkBuilder
from traceaudit.model.bytes.split import is_helper, share_inputs
from traceaudit.model.bytes.work import Work
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.ffn import Experts
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
    """Give kernels their roles in the model, and those without bytes the bytes of these.

    There are none where no whole step has the model's layers.
    """
    roles = RoleWork(model, workload)
    sizes = Sizes(model, workload)
    matrices = max((layer.ffn.matrices for layer in model.layers if isinstance(layer.ffn, Experts)), default=0)
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
        taken = _Step(layout, ops, roles, sizes)
        for index, (op, text, kind) in enumerate(zip(members, texts, classes, strict=True)):
            taken.take(index, op, text, kind)
        for group, work in taken.found:
            _name(into, group, work)
            open_group = [op for op in group if is_open[op]]
            _put(into, open_group, work, names, ops, duration, matrices)
    style = max(styles, key=lambda style: styles[style], default=Style())
    return RoleMatch(products, unplaced, style, layers)


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
    if any(kernel_class(text) is KernelClass.ATTENTION for text in count):
        return frozenset()
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


_QKV = frozenset({"q", "k", "v", "qkv", "q_b", "k_up", "kv_a", "qkv_a"})


class _Step:
    """The pieces of work of one step's kernels, taken in order: a product with its helpers, or a kernel alone."""

    def __init__(self, layout: Layout, ops: DeviceOps, roles: RoleWork, sizes: Sizes) -> None:
        self._layout = layout
        self._ops = ops
        self._roles = roles
        self._sizes = sizes
        self._groups: dict[Placed, int] = {}
        self._current: Placed | None = None
        # A capture may begin within a layer, behind its first products.
        self._place = Place(attending=True)
        self._copied = 0
        self.found: list[tuple[list[int], Work]] = []

    def take(self, index: int, op: int, text: str, kind: KernelClass) -> None:
        """Take the next kernel."""
        placed = self._layout.roles.get(index)
        if placed is not None:
            self._product(placed, op)
        elif kind is KernelClass.HELPER and self._current in self._groups:
            self.found[self._groups[self._current]][0].append(op)
        else:
            self._current = None if kind in _PRODUCTS else self._current
            work = self._expansion(op, text) or self._activation(op, text, kind)
            if work is not None:
                self.found.append(([op], work))

    def _product(self, placed: Placed, op: int) -> None:
        self._current = placed
        layer = self._place.layer if placed.layer is None else placed.layer
        copied = self._copied if placed.role == "attention" else 0
        work = self._roles.of(placed.role, placed.layer, copied=copied)
        self._place = Place(layer, placed.role in _QKV, placed.role == HEAD)
        self._copied = self._copied if self._place.attending else 0
        if work is None:
            return
        if placed in self._groups:
            self.found[self._groups[placed]][0].append(op)
        else:
            self._groups[placed] = len(self.found)
            self.found.append(([op], work))

    def _expansion(self, op: int, text: str) -> Work | None:
        """Return the work of a kernel that copies keys or values to one head for each query head, None for others."""
        if not self._place.attending:
            return None
        layer, workload = self._sizes.model.layers[self._place.layer], self._sizes.workload
        elements = expanded_elements(layer, workload)
        parts = parts_copied(text, self._blocks(op), int(self._ops.block_x[op]), elements)
        if not parts:
            return None
        self._copied += parts
        return self._roles.expansion(self._place.layer, parts * elements)

    def _activation(self, op: int, text: str, kind: KernelClass) -> Work | None:
        threads = int(self._ops.block_x[op])
        return activation(kind, text, self._blocks(op), threads, self._place, self._roles, self._sizes)

    def _blocks(self, op: int) -> int:
        """Return the blocks of a launch, 0 where the trace does not tell."""
        sides = (int(self._ops.grid_x[op]), int(self._ops.grid_y[op]), int(self._ops.grid_z[op]))
        return 0 if min(sides) < 1 else sides[0] * sides[1] * sides[2]


def _name(into: OpWorkBuilder, group: list[int], work: Work) -> None:
    """Give kernels the role of a work, those too whose bytes another source tells."""
    if work.role is not None:
        for op in group:
            into.name_role(op, work.role)


def _put(
    into: OpWorkBuilder,
    group: list[int],
    work: Work,
    names: tuple[str, ...],
    ops: DeviceOps,
    duration: I64,
    matrices: int,
) -> None:
    """Share a work among its kernels; an expert has `matrices`."""
    if not group:
        return
    texts = [names[int(ops.name[op])] for op in group]
    times = _expert_weights(texts, matrices) if work.role == "experts" else None
    times = [int(duration[op]) for op in group] if times is None else times
    reads = share_inputs(work.read_bytes, texts, times)
    flops = None if work.flop is None else share_inputs(work.flop, texts, times)
    for place, op in enumerate(group):
        last = place == len(group) - 1
        into.put(op, work, reads[place], work.write_bytes if last else 0, None if flops is None else flops[place])


def _expert_weights(texts: Sequence[str], matrices: int) -> list[int] | None:
    """Return how the experts' weights are spread over their products, by order; None where their number tells nothing.

    Of two products the second has the last matrix and the first all others (gate and up); else each has one.
    """
    products = [place for place, text in enumerate(texts) if not is_helper(text)]
    if len(products) not in {2, matrices}:
        return None
    weights = [0] * len(texts)
    for place in products:
        weights[place] = 1
    weights[products[0]] += matrices - len(products)
    return weights

"""Which kernel of a decode step multiplies by which weights: the layer pattern of a model found in a kernel sequence.

Attention kernels mark the layers. Between two of them stand the products of one layer's rest and the next one's
beginning; how engines fuse them varies (queries, keys and values in one product or three, gate and up in one or two).
Every way of fusing is tried, and the one that explains most of the sequence is taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from traceaudit.model.bytes.kernelclass import KernelClass
from traceaudit.model.llm.architecture import Architecture, Layer
from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.ffn import Dense
from traceaudit.model.llm.latent import Latent

__all__ = ["HEAD", "Layout", "Placed", "Style", "lay_out"]

HEAD = "lm_head"


@dataclass(frozen=True, slots=True)
class Style:
    """How an engine fuses products.

    Attributes
    ----------
    split_qkv, split_gate_up
        Whether queries, keys and values, or gate and up, are products of their own.
    shared_first
        Whether shared experts run before the router.
    absorbed
        Whether latent attention multiplies by its up projections head by head, before and after.
    """

    split_qkv: bool = False
    split_gate_up: bool = False
    shared_first: bool = False
    absorbed: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """A kernel's place in the model: role, and layer (None for what lies outside the layers)."""

    role: str
    layer: int | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Roles by position in a sequence, the way of fusing, and how many products found no role."""

    roles: dict[int, Placed]
    style: Style
    products: int
    unplaced: int


def lay_out(classes: Sequence[KernelClass], model: Architecture, *, whole: bool) -> Layout:
    """Give the products and attention kernels of one step their roles.

    Parameters
    ----------
    classes
        Class of each kernel, in order.
    model
        Whose step it is.
    whole
        Whether the sequence is a whole step; else it is the end of one, and layers are counted from its end.
    """
    anchors = [at for at, kind in enumerate(classes) if kind is KernelClass.ATTENTION]
    count = len(model.layers)
    first = 0 if whole else count - len(anchors)
    products = [at for at, kind in enumerate(classes) if kind in _PRODUCTS]
    if (whole and len(anchors) != count) or first < 0:
        return Layout({}, Style(), len(products), len(products))
    best = Layout({}, Style(), len(products), len(products))
    for style in _styles(model):
        roles = dict(_place(classes, anchors, products, model, style, first))
        unplaced = sum(at not in roles for at in products)
        if len(roles) > len(best.roles):
            best = Layout(roles, style, len(products), unplaced)
    return best


_PRODUCTS = (KernelClass.GEMM, KernelClass.EXPERTS)


def _styles(model: Architecture) -> Iterator[Style]:
    latent = any(isinstance(layer.attention, Latent) for layer in model.layers)
    experts = any(not isinstance(layer.ffn, Dense) for layer in model.layers)
    choices = (
        (False, True),
        (False, True),
        (False, True) if experts else (False,),
        (False, True) if latent else (False,),
    )
    yield from (Style(*chosen) for chosen in product(*choices))


def _place(
    classes: Sequence[KernelClass],
    anchors: Sequence[int],
    products: Sequence[int],
    model: Architecture,
    style: Style,
    first: int,
) -> Iterator[tuple[int, Placed]]:
    """Yield the places of what one way of fusing explains; a stretch that does not fit gets no roles."""
    layers = model.layers
    yield from ((at, Placed("attention", first + place)) for place, at in enumerate(anchors))
    bounds = [-1, *anchors, len(classes)]
    for place in range(len(bounds) - 1):
        found = [at for at in products if bounds[place] < at < bounds[place + 1]]
        done, coming = first + place - 1, first + place
        wanted = _after(layers[done], done, style) if 0 <= done < len(layers) and place else []
        wanted += _before(layers[coming], coming, style) if coming < len(layers) else [_head()]
        if place == 0 and coming > 0:  # a sequence that begins within a step: match from its end
            wanted = _after(layers[coming - 1], coming - 1, style) + wanted
            wanted = wanted[len(wanted) - len(found) :] if len(found) <= len(wanted) else wanted
        yield from _match([(at, classes[at]) for at in found], wanted)


def _head() -> tuple[KernelClass, Placed]:
    return KernelClass.GEMM, Placed(HEAD, None)


def _match(
    found: Sequence[tuple[int, KernelClass]], wanted: Sequence[tuple[KernelClass, Placed]]
) -> Iterator[tuple[int, Placed]]:
    """Pair what was found with what is wanted, if their classes agree; neighbouring expert kernels share one role."""
    runs: list[tuple[KernelClass, list[int]]] = []
    for at, kind in found:
        if kind is KernelClass.EXPERTS and runs and runs[-1][0] is kind:
            runs[-1][1].append(at)
        else:
            runs.append((kind, [at]))
    if [kind for kind, _ in runs] != [kind for kind, _ in wanted]:
        return
    for (_, members), (_, placed) in zip(runs, wanted, strict=True):
        yield from ((at, placed) for at in members)


def _before(layer: Layer, index: int, style: Style) -> list[tuple[KernelClass, Placed]]:
    """Return the products of a layer before its attention."""
    if isinstance(layer.attention, GroupedQuery):
        roles = ["q", "k", "v"] if style.split_qkv else ["qkv"]
    elif isinstance(layer.attention, Latent):
        low = ["q_a", "kv_a"] if style.split_qkv else ["qkv_a"]
        roles = [*low, "q_b"] if layer.attention.q_rank else ["q_b", "kv_a"] if style.split_qkv else ["qkv_a"]
        roles += ["k_up"] if style.absorbed else []
    else:
        roles = []
    return [(KernelClass.GEMM, Placed(role, index)) for role in roles]


def _after(layer: Layer, index: int, style: Style) -> list[tuple[KernelClass, Placed]]:
    """Return the products of a layer after its attention."""
    roles = ["v_up"] if isinstance(layer.attention, Latent) and style.absorbed else []
    roles.append("o")
    dense = ["gate", "up", "down"] if style.split_gate_up else ["gate_up", "down"]
    if isinstance(layer.ffn, Dense):
        roles += dense if layer.ffn.matrices > 2 else ["up", "down"]  # noqa: PLR2004  (gate, up and down)
    else:
        shared = [f"shared_{role}" for role in dense] if layer.ffn.shared_width else []
        routed = ["router", "experts"]
        roles += [*shared, *routed] if style.shared_first else [*routed, *shared]
    return [(KernelClass.EXPERTS if role == "experts" else KernelClass.GEMM, Placed(role, index)) for role in roles]

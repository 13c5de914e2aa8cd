"""Bytes and FLOP of each role of a decoder, from the model's configuration and the batch."""

from collections.abc import Callable
from dataclasses import dataclass

from traceaudit.model.bytes.work import Family, Source, Work
from traceaudit.model.llm.architecture import Architecture, Layer
from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.ffn import Dense, Experts, touched
from traceaudit.model.llm.latent import Latent
from traceaudit.model.llm.quantisation import KvDtype
from traceaudit.model.llm.workload import Workload

__all__ = ["RoleWork"]

ACTIVATION_BYTES = 2
_GATED = 3
_COPIED = ", copied to one head for each query head"


@dataclass(frozen=True, slots=True)
class _Matrix:
    component: Component
    inner: float
    columns: float


class RoleWork:
    """Works out roles for one model and one batch."""

    def __init__(self, model: Architecture, workload: Workload) -> None:
        self._model = model
        self._workload = workload
        self._tp = workload.parallelism.tp
        self._said = (
            f"{workload.batch} requests of {max(workload.contexts)} cached tokens, tp {self._tp}, of {model.name}"
        )

    def of(self, role: str, index: int | None, *, copied: int = 0) -> Work | None:
        """Return the work of a role in a layer; None for roles that are not modelled.

        `copied` says how many of keys and values attention reads as copies with one head for each query head.
        """
        if role == "lm_head":
            return self._product(role, self._head(), self._workload.batch)
        layer = self._model.layers[index or 0]
        if role == "attention":
            return self._attention(layer, min(copied, 2))
        if role == "experts" and isinstance(layer.ffn, Experts):
            return self._experts(layer.ffn)
        make = _MATRICES.get(role)
        matrix = None if make is None else make(layer, self._tp)
        return None if matrix is None else self._product(role, matrix, self._workload.tokens)

    def activations(self, role: str, *, read: float, write: float, what: str) -> Work:
        """Return the work of a kernel that only moves activations."""
        return Work(
            Family.NORM if role == "norm" else Family.POINTWISE,
            Source.MODEL,
            round(read),
            round(write),
            assumption=f"{what}; {self._said}",
            role=role or None,
        )

    def _head(self) -> _Matrix:
        return _Matrix(Component.LM_HEAD, self._model.hidden, self._model.vocab / self._tp)

    def _product(self, role: str, matrix: _Matrix, rows: int) -> Work:
        stored = self._model.formats.of(matrix.component)
        elements = matrix.inner * matrix.columns
        read = elements * stored.bytes_per_weight + rows * matrix.inner * ACTIVATION_BYTES
        return Work(
            Family.GEMM,
            Source.MODEL,
            round(read),
            round(rows * matrix.columns * ACTIVATION_BYTES),
            round(2 * rows * elements),
            stored.compute,
            f"role {role}, {matrix.inner:.0f} x {matrix.columns:.0f} as {stored.name}; {self._said}",
            role,
        )

    def expansion(self, index: int, elements: int) -> Work:
        """Return the work of copying keys or values to one head for each query head, of `elements` in all."""
        layer = self._model.layers[index]
        size = elements * ACTIVATION_BYTES
        return Work(
            Family.CACHE,
            Source.MODEL,
            round(size / _sharing(layer, self._tp)),
            size,
            assumption=f"role kv_expand, elements by the grid, {layer.attention.label}; {self._said}",
            role="kv_expand",
        )

    def _attention(self, layer: Layer, copied: int) -> Work:
        mixer, load = layer.attention, self._workload
        dtype = load.kv_dtype or self._model.formats.kv_dtype or mixer.default_kv_dtype
        cached = sum(part.size_bytes for context in load.contexts for part in mixer.traffic(context, dtype, self._tp))
        if copied:
            cached *= 1 + (_sharing(layer, self._tp) - 1) * copied / 2
        flop = load.tokens_per_request * sum(mixer.core_flop(context, self._tp) for context in load.contexts)
        asked, given = _query_widths(layer)
        rows = load.tokens * ACTIVATION_BYTES / self._tp
        return Work(
            Family.ATTENTION,
            Source.MODEL,
            round(cached + rows * asked),
            round(rows * given),
            round(flop),
            dtype.compute if dtype in {KvDtype.FP8, KvDtype.NVFP4} else "bf16",
            f"role attention, {mixer.label}, cache as {dtype}{_COPIED if copied else ''}; {self._said}",
            "attention",
            _heads(layer, self._tp, load.batch, copied),
        )

    def _experts(self, ffn: Experts) -> Work:
        load, stored = self._workload, self._model.formats.of(Component.ROUTED_EXPERTS)
        parallelism = load.parallelism
        tokens = load.tokens * parallelism.meeting_engines
        used = touched(ffn.count, ffn.per_token, tokens)
        local = used.expected / parallelism.ep / parallelism.expert_slices
        chosen = tokens * ffn.per_token / parallelism.ep / parallelism.expert_slices
        return Work(
            Family.EXPERTS,
            Source.MODEL,
            round(local * ffn.expert_elements * stored.bytes_per_weight + load.tokens * ffn.hidden * ACTIVATION_BYTES),
            load.tokens * ffn.hidden * ACTIVATION_BYTES,
            round(2 * chosen * ffn.expert_elements),
            stored.compute,
            f"role experts, {used.expected:.1f} of {ffn.count} touched, as uniform routing would "
            f"({used.minimum:.0f} to {used.maximum:.0f}), as {stored.name}; {self._said}",
            "experts",
        )


def _query_widths(layer: Layer) -> tuple[float, float]:
    """Return the elements of one token's queries, and of what its attention gives."""
    mixer = layer.attention
    if isinstance(mixer, GroupedQuery):
        return mixer.heads * mixer.head_dim, mixer.heads * mixer.value_dim
    if isinstance(mixer, Latent):
        return mixer.heads * (mixer.kv_rank + mixer.rope_dim), mixer.heads * mixer.kv_rank
    return 0.0, 0.0


def _heads(layer: Layer, tp: int, batch: int, copied: int) -> tuple[int, int, int] | None:
    mixer = layer.attention
    if isinstance(mixer, Latent):
        return mixer.heads // tp, 1, batch
    if not isinstance(mixer, GroupedQuery):
        return None
    asked = mixer.heads // tp
    return asked, asked if copied else round(_kv_heads(mixer, tp)), batch


def _sharing(layer: Layer, tp: int) -> float:
    """Return how many query heads share a head of keys and values."""
    mixer = layer.attention
    return mixer.heads / tp / _kv_heads(mixer, tp) if isinstance(mixer, GroupedQuery) else 1.0


def _kv_heads(mixer: GroupedQuery, tp: int) -> float:
    return max(1.0, mixer.kv_heads / tp)


def _grouped(part: str) -> Callable[[Layer, int], _Matrix | None]:
    def make(layer: Layer, tp: int) -> _Matrix | None:
        mixer = layer.attention
        if not isinstance(mixer, GroupedQuery):
            return None
        heads = mixer.heads / tp
        q = heads * mixer.head_dim * (2 if mixer.gated else 1)
        k, v = _kv_heads(mixer, tp) * mixer.head_dim, _kv_heads(mixer, tp) * mixer.value_dim
        columns = {"q": q, "k": k, "v": v, "qkv": q + k + v}[part]
        return _Matrix(Component.ATTENTION, mixer.hidden, columns)

    return make


def _latent(part: str) -> Callable[[Layer, int], _Matrix | None]:
    def make(layer: Layer, tp: int) -> _Matrix | None:
        mixer = layer.attention
        if not isinstance(mixer, Latent):
            return None
        heads, rank = mixer.heads / tp, mixer.q_rank or 0
        query = mixer.nope_dim + mixer.rope_dim
        low = mixer.kv_rank + mixer.rope_dim
        replicated, split = Component.ATTENTION_REPLICATED, Component.ATTENTION
        return {
            "qkv_a": _Matrix(replicated, mixer.hidden, low + (rank or heads * query)),
            "q_a": _Matrix(replicated, mixer.hidden, rank),
            "kv_a": _Matrix(replicated, mixer.hidden, low),
            "q_b": _Matrix(split, rank or mixer.hidden, heads * query),
            "k_up": _Matrix(split, mixer.kv_rank, heads * mixer.nope_dim),
            "v_up": _Matrix(split, mixer.kv_rank, heads * mixer.value_dim),
        }[part]

    return make


def _output(layer: Layer, tp: int) -> _Matrix | None:
    mixer = layer.attention
    if not isinstance(mixer, GroupedQuery | Latent):
        return None
    return _Matrix(Component.ATTENTION, mixer.heads / tp * mixer.value_dim, mixer.hidden)


def _ffn(matrices: int, *, down: bool, shared: bool = False) -> Callable[[Layer, int], _Matrix | None]:
    def make(layer: Layer, tp: int) -> _Matrix | None:
        net = layer.ffn
        if shared and isinstance(net, Experts):
            component, width = Component.SHARED_EXPERTS, net.shared_width / tp
        elif not shared and isinstance(net, Dense):
            component, width = Component.DENSE_FFN, net.width / tp
        else:
            return None
        return _Matrix(component, width, net.hidden) if down else _Matrix(component, net.hidden, matrices * width)

    return make


def _router(layer: Layer, tp: int) -> _Matrix | None:  # noqa: ARG001  (every rank holds it whole)
    net = layer.ffn
    return _Matrix(Component.ROUTER, net.hidden, net.count) if isinstance(net, Experts) else None


_MATRICES: dict[str, Callable[[Layer, int], _Matrix | None]] = {
    **{part: _grouped(part) for part in ("q", "k", "v", "qkv")},
    **{part: _latent(part) for part in ("qkv_a", "q_a", "kv_a", "q_b", "k_up", "v_up")},
    "o": _output,
    "gate_up": _ffn(2, down=False),
    "gate": _ffn(1, down=False),
    "up": _ffn(1, down=False),
    "down": _ffn(1, down=True),
    "shared_gate_up": _ffn(2, down=False, shared=True),
    "shared_gate": _ffn(1, down=False, shared=True),
    "shared_up": _ffn(1, down=False, shared=True),
    "shared_down": _ffn(1, down=True, shared=True),
    "router": _router,
}

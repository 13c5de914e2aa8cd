"""Ops that move data or fold it: copies, gathers, scatters, concatenation, cache writes, reductions, sorting."""

import math
import re
from collections.abc import Callable

from traceaudit.model.bytes.facts import Facts
from traceaudit.model.bytes.operands import DTYPE_BYTES, OpCall, Operand
from traceaudit.model.bytes.work import Family, Source, Work

__all__ = ["MODELS"]

Model = Callable[[OpCall, Facts], Work | None]
LONG = DTYPE_BYTES["long int"]
_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
_NAMED = ("c10::BFloat16", "c10::Half", "double", "float", "long", "int", "bool")


def _moved(read: int, write: int, assumption: str = "") -> Work:
    return Work(Family.MOVEMENT, Source.SHAPE, read, write, assumption=assumption)


def _copy(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001  (every model takes the facts)
    """Model ``copy_(target, source)``."""
    target, source = call.tensor(0), call.tensor(1)
    if target is None or source is None:
        return None
    return _moved(source.size_bytes, target.size_bytes)


def _fill(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    target = call.tensor(0)
    return None if target is None else _moved(0, target.size_bytes)


def _cat(call: OpCall, facts: Facts) -> Work | None:
    """Model concatenation; the profiler does not record the type of listed tensors, the kernel's name does."""
    members = call.operands[0].members if call.operands else ()
    if not members or any(item.cut for item in members):
        return None
    size = _item_bytes(facts.kernel)
    if size is None:
        return None
    stored = sum(item.stored for item in members) * size
    return _moved(stored, sum(item.numel for item in members) * size, f"{size} B an element, by the kernel's name")


def _item_bytes(kernel: str) -> int | None:
    found = _OPAQUE.search(kernel)
    if found is not None:
        return int(found[1])
    return next((DTYPE_BYTES[name] for name in _NAMED if re.search(rf"[<, ]{name}[>,]", kernel)), None)


def _index_select(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    """Model rows picked from a table: those rows, not the table."""
    table, index = call.tensor(0), call.tensor(2)
    dim = call.integer(1) or 0
    if table is None or index is None or not table.dims or not -len(table.dims) <= dim < len(table.dims):
        return None
    row = table.numel // table.dims[dim] if table.dims[dim] else 0
    size = row * index.numel * table.item_bytes
    return _moved(size + index.size_bytes, size)


def _embedding(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    table, index = call.tensor(0), call.tensor(1)
    if table is None or index is None or not table.dims:
        return None
    size = table.dims[-1] * index.numel * table.item_bytes
    return _moved(size + index.size_bytes, size)


def _gather(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    source, index = call.tensor(0), call.tensor(2)
    if source is None or index is None:
        return None
    return _moved(index.numel * source.item_bytes + index.size_bytes, index.numel * source.item_bytes)


def _scatter(source_at: int, index_at: int) -> Model:
    """Model values written to places of a larger tensor, whose other elements stay untouched."""

    def model(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
        target, source, index = call.tensor(0), call.tensor(source_at), call.tensor(index_at)
        if target is None or source is None:
            return None
        places = index.size_bytes if index else 0
        return _moved(source.size_bytes + places, source.numel * target.item_bytes)

    return model


def _index(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    """Model ``x[indices]`` with one list of indices along the first dimensions."""
    source = call.tensor(0)
    members = call.operands[1].members if len(call.operands) > 1 else ()
    if source is None or not members or any(not item.dims for item in members):
        return None
    picked = max(item.numel for item in members)
    rest = math.prod(source.dims[len(members) :])
    size = picked * rest * source.item_bytes
    return _moved(size + picked * LONG * len(members), size)


def _reduction(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    """Model a sum, mean, maximum and the like: the input once, and what is left of it."""
    x = call.tensor(0)
    if x is None:
        return None
    kept = _kept(x, call)
    item = LONG if "arg" in call.name else 1 if call.name in {"aten::all", "aten::any"} else x.item_bytes
    both = LONG if call.name in {"aten::max", "aten::min"} and kept > 1 else 0
    return Work(Family.REDUCTION, Source.SHAPE, x.size_bytes, kept * (item + both))


def _kept(x: Operand, call: OpCall) -> int:
    """Return the elements of the result, by the dims that are folded; all of them if the call names none."""
    if len(call.operands) < 2:  # noqa: PLR2004  (self, and the dims)
        return 1
    second = call.operands[1]
    single = second.integer()
    folded = (single,) if single is not None else second.integers()
    if not folded or any(not -len(x.dims) <= dim < len(x.dims) for dim in folded):
        return 1
    gone = math.prod(x.dims[dim] for dim in folded)
    return x.numel // gone if gone else 0


def _topk(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    x, count = call.tensor(0), call.integer(1)
    if x is None or not x.dims or count is None or not x.dims[-1]:
        return None
    picked = x.numel // x.dims[-1] * count
    return Work(Family.REDUCTION, Source.SHAPE, x.size_bytes, picked * (x.item_bytes + LONG))


def _sort(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    x = call.tensor(0)
    if x is None:
        return None
    return Work(Family.REDUCTION, Source.SHAPE, x.size_bytes, x.numel * (x.item_bytes + LONG))


def _cache_write(key: int, value: int, key_cache: int) -> Model:
    """Model new keys and values put into the cache: theirs alone, whatever the size of the cache."""

    def model(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
        k, v, cache = call.tensor(key), call.tensor(value), call.tensor(key_cache)
        if k is None or v is None or cache is None:
            return None
        return _moved(k.size_bytes + v.size_bytes, (k.numel + v.numel) * cache.item_bytes)

    return model


_REDUCTIONS = (
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "std",
    "sum",
    "var",
    "linalg_vector_norm",
)

MODELS: dict[str, Model] = {
    "aten::copy_": _copy,
    "aten::fill_": _fill,
    "aten::zero_": _fill,
    "aten::cat": _cat,
    "aten::stack": _cat,
    "aten::index_select": _index_select,
    "aten::embedding": _embedding,
    "aten::gather": _gather,
    "aten::scatter_": _scatter(3, 2),
    "aten::scatter_add_": _scatter(3, 2),
    "aten::index_copy_": _scatter(3, 2),
    "aten::index_add_": _scatter(3, 2),
    "aten::index_put_": _scatter(2, 99),
    "aten::_index_put_impl_": _scatter(2, 99),
    "aten::index": _index,
    **{f"aten::{name}": _reduction for name in _REDUCTIONS},
    "aten::topk": _topk,
    "aten::sort": _sort,
    "_C_cache_ops::reshape_and_cache": _cache_write(0, 1, 2),
    "_C_cache_ops::reshape_and_cache_flash": _cache_write(0, 1, 2),
    "sgl_kernel::store_kv_cache": _cache_write(2, 3, 0),
}

"""Element by element ops, norms, softmax and rotary embedding: inputs once, outputs once."""

from collections.abc import Callable, Sequence

from traceaudit.model.bytes.facts import Facts
from traceaudit.model.bytes.operands import DTYPE_BYTES, OpCall, Operand
from traceaudit.model.bytes.work import Family, Source, Work

__all__ = ["MODELS", "broadcast"]

Model = Callable[[OpCall, Facts], Work | None]
FLOAT = DTYPE_BYTES["float"]


def broadcast(shapes: Sequence[tuple[int, ...]]) -> int:
    """Return the elements of the shape to which all shapes broadcast.

    Examples
    --------
    >>> broadcast([(16, 20, 1, 128), (1, 128)])
    40960
    """
    total = 1
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        sizes = [shape[-axis] for shape in shapes if len(shape) >= axis]
        total *= 0 if 0 in sizes else max(sizes)
    return total


def _pointwise(inputs: int, *, boolean: bool = False) -> Model:
    """Model an op with so many inputs that may be tensors; a further tensor is the place of the result."""

    def model(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001  (every model takes the facts)
        if not call.complete:
            return None
        read = [item for item in call.operands[:inputs] if item.is_tensor]
        if not read:
            return None
        given = [item for item in call.operands[inputs:] if item.is_tensor]
        if call.name.endswith("_"):
            write = read[0].numel * read[0].item_bytes
        elif given:
            write = given[-1].numel * given[-1].item_bytes
        else:
            item_bytes = 1 if boolean else _result_bytes(read)
            write = broadcast([item.dims for item in read]) * item_bytes
        return Work(Family.POINTWISE, Source.SHAPE, sum(item.size_bytes for item in read), write)

    return model


def _result_bytes(operands: Sequence[Operand]) -> int:
    """Return the bytes of a result's element: tensors with dimensions decide before those without."""
    wide = [item for item in operands if item.dims] or list(operands)
    floats = [item for item in wide if item.dtype in {"float", "double"} or item.dtype.startswith("c10::")]
    return max(item.item_bytes for item in floats or wide)


def _norm(weights: tuple[int, ...], *, rows: int) -> Model:
    """Model a norm that gives its input's shape, and so many fp32 numbers for each row."""

    def model(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
        x = call.tensor(0)
        if x is None or not x.dims:
            return None
        scale = sum(item.size_bytes for at in weights if (item := call.tensor(at)) is not None)
        count = x.numel // x.dims[-1] if x.dims[-1] else 0
        return Work(Family.NORM, Source.SHAPE, x.size_bytes + scale, x.numel * x.item_bytes + rows * FLOAT * count)

    return model


def _softmax(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    x = call.tensor(0)
    if x is None:
        return None
    return Work(Family.NORM, Source.SHAPE, x.size_bytes, x.numel * x.item_bytes)


def _into(*, out: tuple[int, ...], updated: tuple[int, ...] = (), family: Family = Family.POINTWISE) -> Model:
    """Model an engine's op by the places of what it writes; `updated` operands are read as well."""

    def model(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
        places = list(enumerate(call.operands))
        read = sum(item.size_bytes for at, item in places if item.is_tensor and at not in out)
        write = sum(item.size_bytes for at, item in places if item.is_tensor and at in out + updated)
        return Work(family, Source.SHAPE, read, write) if read or write else None

    return model


def _rotary(query: int, key: int, cache: int) -> Model:
    """Model rotary embedding in place; of the table it reads a row for each position, not the whole."""

    def model(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
        q, k, table, positions = call.tensor(query), call.tensor(key), call.tensor(cache), call.tensor(0)
        if q is None or not q.dims:
            return None
        turned = q.size_bytes + (k.size_bytes if k else 0)
        rows = positions.numel if positions else 0
        width = table.dims[-1] * table.item_bytes if table and table.dims else 0
        extra = rows * width + (positions.size_bytes if positions else 0)
        return Work(Family.POINTWISE, Source.SHAPE, turned + extra, turned)

    return model


_UNARY = (
    "abs",
    "ceil",
    "cos",
    "erf",
    "exp",
    "floor",
    "gelu",
    "hardswish",
    "isfinite",
    "leaky_relu",
    "log",
    "logical_not",
    "mish",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "softplus",
    "sqrt",
    "square",
    "tanh",
    "bitwise_not",
    "clamp",
    "clamp_min",
    "clamp_max",
    "cumsum",
    "triu",
    "tril",
    "nan_to_num",
)
_BINARY = (
    "add",
    "bitwise_and",
    "bitwise_or",
    "div",
    "floor_divide",
    "fmod",
    "logical_and",
    "logical_or",
    "maximum",
    "minimum",
    "mul",
    "pow",
    "remainder",
    "rsub",
    "sub",
    "masked_fill",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "xlogy",
)
_COMPARE = ("eq", "ge", "gt", "le", "lt", "ne")
_TERNARY = ("addcdiv", "addcmul", "lerp", "where")

MODELS: dict[str, Model] = {
    **{f"aten::{name}{mark}": _pointwise(1) for name in _UNARY for mark in ("", "_")},
    **{f"aten::{name}{mark}": _pointwise(2) for name in _BINARY for mark in ("", "_")},
    **{f"aten::{name}": _pointwise(2, boolean=True) for name in _COMPARE},
    **{f"aten::{name}": _pointwise(3) for name in _TERNARY},
    "aten::isfinite": _pointwise(1, boolean=True),
    "aten::_fused_rms_norm": _norm((2,), rows=1),
    "aten::native_layer_norm": _norm((2, 3), rows=2),
    "aten::rms_norm": _norm((2,), rows=0),
    "aten::layer_norm": _norm((2, 3), rows=2),
    "aten::_softmax": _softmax,
    "aten::_log_softmax": _softmax,
    "aten::_safe_softmax": _softmax,
    # vLLM and SGLang; results come first unless they go in place
    "_C::rms_norm": _into(out=(0,), family=Family.NORM),
    "_C::fused_add_rms_norm": _into(out=(), updated=(0, 1), family=Family.NORM),
    "_C::rms_norm_static_fp8_quant": _into(out=(0,), family=Family.NORM),
    "_C::rms_norm_dynamic_per_token_quant": _into(out=(0,), family=Family.NORM),
    "_C::silu_and_mul": _into(out=(0,)),
    "_C::mul_and_silu": _into(out=(0,)),
    "_C::gelu_and_mul": _into(out=(0,)),
    "_C::gelu_tanh_and_mul": _into(out=(0,)),
    "_C::silu_and_mul_quant": _into(out=(0,)),
    "_C::static_scaled_fp8_quant": _into(out=(0,)),
    "_C::dynamic_scaled_fp8_quant": _into(out=(0, 2)),
    "_C::dynamic_per_token_scaled_fp8_quant": _into(out=(0, 2)),
    "_C::per_token_group_fp8_quant": _into(out=(1, 2)),
    "_C::scaled_fp4_quant": _into(out=(0, 2)),
    "_C::rotary_embedding": _rotary(1, 2, 4),
    "_moe_C::moe_sum": _into(out=(1,)),
    "_moe_C::topk_softmax": _into(out=(0, 1, 2)),
    "sgl_kernel::rmsnorm": _into(out=(0,), family=Family.NORM),
    "sgl_kernel::gemma_rmsnorm": _into(out=(0,), family=Family.NORM),
    "sgl_kernel::fused_add_rmsnorm": _into(out=(), updated=(0, 1), family=Family.NORM),
    "sgl_kernel::gemma_fused_add_rmsnorm": _into(out=(), updated=(0, 1), family=Family.NORM),
    "sgl_kernel::silu_and_mul": _into(out=(0,)),
    "sgl_kernel::gelu_and_mul": _into(out=(0,)),
    "sgl_kernel::sgl_per_token_group_quant_8bit": _into(out=(1, 2)),
    "sgl_kernel::sgl_per_token_group_quant_fp8": _into(out=(1, 2)),
    "sgl_kernel::sgl_per_token_quant_fp8": _into(out=(1, 2)),
    "sgl_kernel::topk_softmax": _into(out=(0, 1)),
    "flashinfer::rmsnorm": _into(out=(0,), family=Family.NORM),
    "flashinfer::fused_add_rmsnorm": _into(out=(), updated=(0, 1), family=Family.NORM),
    "flashinfer::silu_and_mul": _into(out=(0,)),
}

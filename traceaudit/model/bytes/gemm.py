"""Matrix products: the ATen family, scaled and packed weights, and the custom ops of serving engines.

Read: both factors, bias and scales. Written: the product. FLOP: two for each multiply-add.
"""

import math
from collections.abc import Callable

from traceaudit.model.bytes.experts import routed
from traceaudit.model.bytes.facts import Facts
from traceaudit.model.bytes.operands import DTYPE_BYTES, OpCall, Operand, compute_dtype
from traceaudit.model.bytes.work import Family, Source, Work
from traceaudit.model.llm.ffn import touched

__all__ = ["MODELS"]

PAIR = 2
PACKED_FP4 = "c10::Float4_e2m1fn_x2"
OUT_DTYPE_SCALED = 6
"""Where `_scaled_mm` holds its result's type: self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, fast."""


def _product(call: OpCall, left: int, right: int, *, bias: int | None = None) -> Work | None:
    """Model ``left @ right``, batched or not."""
    a, b = call.tensor(left), call.tensor(right)
    if a is None or b is None or not a.dims or not b.dims:
        return None
    inner = a.dims[-1]
    columns = b.dims[-1] if len(b.dims) >= PAIR else 1
    rows = a.numel // inner if inner else 0
    extra = None if bias is None else call.tensor(bias)
    read = a.size_bytes + b.size_bytes + (extra.size_bytes if extra else 0)
    return _work(read, rows * columns * a.item_bytes, rows, inner, columns, a.dtype)


def _work(read: int, write: int, rows: int, inner: int, columns: int, dtype: str, assumption: str = "") -> Work:
    return Work(Family.GEMM, Source.SHAPE, read, write, 2 * rows * inner * columns, compute_dtype(dtype), assumption)


def _mm(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001  (every model takes the facts)
    return _product(call, 0, 1)


def _addmm(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    return _product(call, 1, 2, bias=0)


def _linear(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    """Model ``x @ w.t() + bias``."""
    x, weight = call.tensor(0), call.tensor(1)
    if x is None or weight is None or not x.dims or not weight.dims or not x.dims[-1]:
        return None
    bias = call.tensor(2)
    inner, columns = x.dims[-1], weight.dims[0]
    rows = x.numel // inner
    read = x.size_bytes + weight.size_bytes + (bias.size_bytes if bias else 0)
    return _work(read, rows * columns * x.item_bytes, rows, inner, columns, x.dtype)


def _scaled_mm(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    """Model fp8 and fp4 products with their scales."""
    a, b = call.tensor(0), call.tensor(1)
    if a is None or b is None or not a.dims or not b.dims:
        return None
    out = call.dtype_at(OUT_DTYPE_SCALED) or "c10::BFloat16"
    rows, columns = a.dims[0], b.dims[-1]
    inner = a.dims[-1] * (2 if a.dtype == PACKED_FP4 else 1)
    read = sum(item.size_bytes for item in call.tensors())
    return _work(read, rows * columns * DTYPE_BYTES[out], rows, inner, columns, a.dtype)


def _int4pack(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    """Model `_weight_int4pack_mm`: packed nibbles, and a scale and a zero for each group."""
    return _weight_only(call, x=0, weight=1, scales=3)


def _int8pack(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
    return _weight_only(call, x=0, weight=1, scales=2, columns_last=True)


def _weight_only(call: OpCall, *, x: int, weight: int, scales: int, columns_last: bool = False) -> Work | None:
    """Model products of activations with small weights, whose number of columns the scales tell."""
    left, packed, scale = call.tensor(x), call.tensor(weight), call.tensor(scales)
    if left is None or packed is None or scale is None or not left.dims or not scale.dims or not left.dims[-1]:
        return None
    columns = scale.dims[-1] if columns_last or len(scale.dims) == PAIR else scale.dims[1]
    inner = left.dims[-1]
    rows = left.numel // inner
    read = left.size_bytes + packed.size_bytes + scale.size_bytes
    return _work(read, rows * columns * left.item_bytes, rows, inner, columns, left.dtype)


def _grouped(call: OpCall, facts: Facts) -> Work | None:
    """Model `_grouped_mm`: rows sorted by expert against one matrix for each expert that has rows.

    A token never chooses an expert twice. Where a router's call in the trace makes as many rows of as many experts,
    that is counted with; else each row chooses for itself.
    """
    a, b = call.tensor(0), call.tensor(1)
    if a is None or b is None or len(a.dims) != PAIR or len(b.dims) != PAIR + 1:
        return None
    rows, inner = a.dims
    experts, columns = b.dims[0], b.dims[-1]
    choices = {one for one in facts.choices if one.experts == experts and one.tokens * one.per_token == rows}
    if len(choices) == 1:
        (choice,) = choices
        routing = touched(experts, choice.per_token, choice.tokens)
        used = routing.expected
        assumption = routed(routing, experts, choice.per_token, choice.tokens)
    else:
        used = min(touched(experts, 1, rows).expected, experts) if experts else 0.0
        assumption = (
            f"{used:.1f} of {experts} groups have rows, as if rows chose alike and independently: no router's top-k in "
            "the trace tells which rows are of one token"
        )
    rest = sum(item.size_bytes for item in call.tensors()) - b.size_bytes
    return Work(
        Family.EXPERTS,
        Source.SHAPE,
        rest + round(b.size_bytes * used / experts),
        rows * columns * DTYPE_BYTES["c10::BFloat16" if a.item_bytes == 1 else a.dtype],
        2 * rows * inner * columns,
        compute_dtype(a.dtype),
        assumption,
    )


def _custom(left: int, right: int, out: int | None = None) -> Callable[[OpCall, Facts], Work | None]:
    """Model an engine's product by the places of its factors: all operands once, and the result."""

    def model(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001
        a, b = call.tensor(left), call.tensor(right)
        if a is None or b is None or not a.dims or not b.dims or not a.dims[-1]:
            return None
        target = None if out is None else call.tensor(out)
        read = sum(item.size_bytes for item in call.tensors()) - (target.size_bytes if target else 0)
        rows, inner = a.numel // a.dims[-1], a.dims[-1] * (2 if _packs_fp4(a) else 1)
        columns = target.dims[-1] if target is not None and target.dims else _columns(call, b, inner)
        write = target.size_bytes if target is not None else rows * (columns or 0) * max(a.item_bytes, PAIR)
        flop = None if columns is None else 2 * rows * inner * columns
        return Work(
            Family.GEMM, Source.SHAPE, read, write, flop, "fp4" if _packs_fp4(a) else compute_dtype(a.dtype),
            "each operand once" if columns else "each operand once; the result's size is not known",
        )  # fmt: skip

    return model


def _packs_fp4(item: Operand) -> bool:
    return item.dtype in {PACKED_FP4, "unsigned char"}


def _columns(call: OpCall, weight: Operand, inner: int) -> int | None:
    """Return the result's width: the side of the weight that is not shared, or the last of the scales' dims."""
    dims = weight.dims
    if len(dims) == PAIR and inner in dims:
        return dims[0] if dims[1] == inner else dims[1]
    scales = [item for item in call.tensors() if item is not weight and len(item.dims) == PAIR]
    widths = {item.dims[-1] for item in scales if item.dims and math.prod(item.dims) < weight.numel * PAIR}
    widths -= {inner}
    return widths.pop() if len(widths) == 1 else None


MODELS: dict[str, Callable[[OpCall, Facts], Work | None]] = {
    "aten::mm": _mm,
    "aten::bmm": _mm,
    "aten::mv": _mm,
    "aten::matmul": _mm,
    "aten::_int_mm": _mm,
    "aten::addmm": _addmm,
    "aten::addmm_": _addmm,
    "aten::_addmm_activation": _addmm,
    "aten::baddbmm": _addmm,
    "aten::addmv": _addmm,
    "aten::linear": _linear,
    "aten::_scaled_mm": _scaled_mm,
    "aten::_weight_int4pack_mm": _int4pack,
    "aten::_weight_int8pack_mm": _int8pack,
    "aten::_grouped_mm": _grouped,
    "aten::_scaled_grouped_mm": _grouped,
    # vLLM
    "_C::cutlass_scaled_mm": _custom(1, 2, 0),
    "_C::cutlass_scaled_mm_azp": _custom(1, 2, 0),
    "_C::cutlass_scaled_fp4_mm": _custom(1, 2, 0),
    "_C::gptq_marlin_gemm": _custom(0, 2),
    "_C::marlin_gemm": _custom(0, 2),
    "_C::gptq_gemm": _custom(0, 1),
    "_C::awq_gemm": _custom(0, 1),
    "_C::machete_mm": _custom(0, 1),
    "_C::allspark_w8a16_gemm": _custom(0, 1),
    "vllm::w8a8_block_fp8_matmul_func": _custom(0, 1),
    "vllm::rocm_unquantized_gemm": _custom(0, 1),
    "vllm::rocm_unquantized_gemm_impl": _custom(0, 1),
    "_rocm_C::wvSplitK": _custom(1, 0),
    "_rocm_C::LLMM1": _custom(1, 0),
    # SGLang
    "sgl_kernel::fp8_scaled_mm": _custom(0, 1),
    "sgl_kernel::int8_scaled_mm": _custom(0, 1),
    "sgl_kernel::fp8_blockwise_scaled_mm": _custom(0, 1),
    "sgl_kernel::cutlass_scaled_fp4_mm": _custom(1, 2, 0),
    "sgl_kernel::gptq_marlin_gemm": _custom(0, 2),
    "sgl_kernel::dsv3_fused_a_gemm": _custom(1, 2, 0),
    "sgl_kernel::dsv3_router_gemm": _custom(1, 2, 0),
    # FlashInfer
    "flashinfer::bmm_fp8": _mm,
    "flashinfer::fp8_gemm": _custom(0, 1),
}

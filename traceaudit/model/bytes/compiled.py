"""Kernels of Inductor and Triton: what the compiler wrote of them, else their arguments.

Inductor records ``kernel_num_gb`` (1e9 bytes a call) and ``kernel_flop`` when it benchmarks kernels. Without them the
arguments are counted once each, but never more elements than the kernel walks over: an argument may be a whole cache
of which it writes one row.
"""

import math

from traceaudit.model.bytes.facts import Facts
from traceaudit.model.bytes.generated import fused_words, is_generated
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.bytes.operands import OpCall, Operand
from traceaudit.model.bytes.work import Family, Source, Work

__all__ = ["annotated", "compiled"]

GB = 1e9


def annotated(call: OpCall) -> Work | None:
    """Return what the compiler itself says of the kernel."""
    moved = _number(call.extra.get("kernel_num_gb"))
    if moved is None:
        return None
    flop = _number(call.extra.get("kernel_flop"))
    return Work(
        Family.COMPILED,
        Source.ANNOTATED,
        round(moved * GB),
        flop=None if flop is None else round(flop),
        assumption="as Inductor estimates it",
    )


def compiled(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001  (every model takes the facts)
    """Model a generated kernel by its arguments, the last of which are the numbers of elements that it walks over."""
    if not is_generated(call.name) or call.extra.get("kernel_backend", "triton") != "triton":
        return None
    counts = [item.integer() for item in call.operands if item.dims == () and not item.is_tensor]
    walked = math.prod(count for count in counts if count)
    operands = list(call.tensors())
    if not operands or not counts:
        return None
    if kernel_class(call.name) is KernelClass.ACTIVATION and "mul" in fused_words(call.name):
        return _gated(operands[-1], walked)
    sizes = [min(item.stored, walked) * item.item_bytes for item in operands]
    written = sizes[-1]
    return Work(
        Family.COMPILED,
        Source.SHAPE,
        sum(sizes) - written,
        written,
        assumption="each argument once, the last one written; updates in place count once",
    )


def _gated(result: Operand, walked: int) -> Work:
    """Model the activation of a gate times what it gates: two inputs, whatever the arguments look like.

    Both may be halves of one argument, or one of them be overwritten by the result.
    """
    size = walked * result.item_bytes
    return Work(Family.COMPILED, Source.SHAPE, 2 * size, size, assumption="gate, and what it gates, and the result")


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None

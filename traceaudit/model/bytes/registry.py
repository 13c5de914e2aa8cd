"""Which model an op has, by its name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from traceaudit.model.bytes import attention, experts, gemm, movement, pointwise
from traceaudit.model.bytes.compiled import annotated, compiled
from traceaudit.model.bytes.facts import Facts
from traceaudit.model.bytes.operands import OpCall
from traceaudit.model.bytes.work import Work

__all__ = ["MODELS", "has_model", "work_of"]

MODELS: Mapping[str, Callable[[OpCall, Facts], Work | None]] = MappingProxyType(
    {**pointwise.MODELS, **movement.MODELS, **gemm.MODELS, **attention.MODELS, **experts.MODELS}
)


def has_model(name: str) -> bool:
    """Return whether an op of this name can be modelled at all."""
    return name in MODELS or name.startswith("triton_")


def work_of(call: OpCall, facts: Facts) -> Work | None:
    """Return what a call moves and computes; None for an op without a model, or whose operands do not tell.

    Examples
    --------
    >>> from traceaudit.model.bytes.operands import op_call
    >>> shapes = b'{"Input Dims":[[16,2048],[2048,3072]],"Input type":["c10::BFloat16","c10::BFloat16"]}'
    >>> work = work_of(op_call("aten::mm", shapes), Facts())
    >>> work.read_bytes, work.write_bytes, work.flop
    (12648448, 98304, 201326592)
    """
    said = annotated(call)
    if said is not None:
        return said
    model = MODELS.get(call.name)
    return compiled(call, facts) if model is None else model(call, facts)

"""What the rows of a category are, for every spelling that writers used since 2021."""

from dataclasses import dataclass
from enum import IntEnum

from traceaudit.model.schema import HostCategory, OpType

__all__ = ["MARKERS_WITH_STREAM", "Part", "Role", "role_of_category"]


class Part(IntEnum):
    """The table that rows go to."""

    DEVICE = 0
    HOST = 1
    SYNC = 2
    OVERHEAD = 3
    SPAN = 4
    FLOW = 5
    NONE = 6


@dataclass(frozen=True, slots=True)
class Role:
    """A table, and what rows are in it: an `OpType` or a `HostCategory`."""

    part: Part
    value: int = 0


_NONE = Role(Part.NONE)
_API = Role(Part.HOST, HostCategory.API)
_CPU_OP = Role(Part.HOST, HostCategory.CPU_OP)
_ANNOTATION = Role(Part.HOST, HostCategory.ANNOTATION)
_KERNEL = Role(Part.DEVICE, OpType.KERNEL)
_MEMCPY = Role(Part.DEVICE, OpType.MEMCPY)
_MEMSET = Role(Part.DEVICE, OpType.MEMSET)

# Keys are lower case. What is absent is counted and left alone: annotations drawn on device tracks
# (gpu_user_annotation), markers (cuda_event), graph_event_node, counters, vendors' own categories.
_ROLES: dict[str, Role] = {
    "kernel": _KERNEL,
    "gpu_memcpy": _MEMCPY,
    "gpu_memset": _MEMSET,
    "memcpy": _MEMCPY,
    "memset": _MEMSET,
    "concurrent_kernel": _KERNEL,
    "mtia_ccp_events": _KERNEL,
    "cuda_runtime": _API,
    "cuda_driver": _API,
    "runtime": _API,
    "xpu_runtime": _API,
    "xpu_driver": _API,
    "mtia_runtime": _API,
    "privateuse1_runtime": _API,
    "privateuse1_driver": _API,
    "glow_runtime": _API,
    "cpu_op": _CPU_OP,
    "operator": _CPU_OP,
    "user_annotation": _ANNOTATION,
    "user": _ANNOTATION,
    "python_function": Role(Part.HOST, HostCategory.PYTHON),
    "cuda_sync": Role(Part.SYNC),
    "xpu_sync": Role(Part.SYNC),
    "overhead": Role(Part.OVERHEAD),
    "trace": Role(Part.SPAN),
    # Flows by which launches are found where rows have no correlation.
    "api_op": Role(Part.FLOW),
    "cpu_to_cuda": Role(Part.FLOW),
    "cpu_to_xpu": Role(Part.FLOW),
    "hosttodevice": Role(Part.FLOW),
    "async_npu": Role(Part.FLOW),
}


MARKERS_WITH_STREAM = frozenset({"gpu_user_annotation", "cuda_event", "cuda_sync", "graph_event_node"})
"""Categories whose rows are no ops though they name a stream, in lower case."""


def role_of_category(category: str | None) -> Role:
    """Return where rows of a category go.

    Examples
    --------
    >>> role_of_category("Kernel").part.name, role_of_category("gpu_user_annotation").part.name
    ('DEVICE', 'NONE')
    """
    return _ROLES.get((category or "").lower(), _NONE)

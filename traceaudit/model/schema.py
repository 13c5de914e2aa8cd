"""The tables of a trace: every column with its type, unit and meaning.

All times are int64 nanoseconds from the earliest row kept, intervals are half-open ``[start, end)``. Names are codes
into `Trace.names`. Rows refer to each other by index; -1 means that there is none.
"""

from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "I8",
    "I16",
    "I32",
    "I64",
    "TABLES",
    "Collectives",
    "DeviceOps",
    "HostCategory",
    "HostRows",
    "Kind",
    "OpType",
    "Overheads",
    "Syncs",
    "Table",
    "Threads",
]

I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class OpType(IntEnum):
    """What a device op is by its trace category."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2


class Kind(IntEnum):
    """What a device op is for: decided by `traceaudit.model.kinds`."""

    COMPUTE = 0
    COMM = 1
    MEMCPY = 2
    MEMSET = 3


class HostCategory(IntEnum):
    """Where a host row comes from."""

    API = 0
    CPU_OP = 1
    ANNOTATION = 2
    PYTHON = 3


def _column(dtype: type[np.generic], unit: str, meaning: str) -> Any:  # noqa: ANN401  (dataclasses.field is typed so)
    return field(metadata={"dtype": np.dtype(dtype), "unit": unit, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Table:
    """A frozen set of equally long numpy columns."""

    title: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check lengths and types, and lock the columns against writing."""
        lengths = set()
        for item in fields(self):
            column = getattr(self, item.name)
            if column.dtype != item.metadata["dtype"]:
                raise TypeError(f"{type(self).__name__}.{item.name} is {column.dtype}, not {item.metadata['dtype']}")
            column.flags.writeable = False
            lengths.add(len(column))
        if len(lengths) > 1:
            raise ValueError(f"columns of {type(self).__name__} differ in length: {sorted(lengths)}")

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(getattr(self, fields(self)[0].name))

    @classmethod
    def of(cls, **columns: npt.ArrayLike) -> Self:
        """Build the table from anything that numpy can read, cast to the declared types."""
        return cls(**{item.name: np.array(columns[item.name], dtype=item.metadata["dtype"]) for item in fields(cls)})

    @classmethod
    def empty(cls) -> Self:
        """Return the table without rows."""
        return cls(**{item.name: np.empty(0, dtype=item.metadata["dtype"]) for item in fields(cls)})

    def take(self, index: npt.NDArray[Any]) -> Self:
        """Return the rows at `index` (positions or a mask) as a new table."""
        return type(self)(**{item.name: getattr(self, item.name)[index] for item in fields(self)})

    def replace(self, **columns: npt.NDArray[Any]) -> Self:
        """Return a copy in which some columns are others."""
        return type(self)(**{item.name: columns.get(item.name, getattr(self, item.name)) for item in fields(self)})

    @property
    def df(self) -> "pd.DataFrame":
        """The table as a pandas frame that shares the columns' memory."""
        import pandas as pd

        return pd.DataFrame({item.name: getattr(self, item.name) for item in fields(self)}, copy=False)


@dataclass(frozen=True, slots=True)
class DeviceOps(Table):
    """Everything timed on a device, sorted by start, then end, then the order in the file."""

    title: ClassVar[str] = "Device ops"

    start_ns: I64 = _column(np.int64, "ns", "start")
    end_ns: I64 = _column(np.int64, "ns", "end, after clipping of impossible durations")
    clipped_ns: I64 = _column(np.int64, "ns", "time that clipping removed from the recorded duration")
    name: I32 = _column(np.int32, "code", "kernel or copy name")
    op_type: I8 = _column(np.int8, "OpType", "kernel, memcpy or memset, by category")
    kind: I8 = _column(np.int8, "Kind", "compute, comm, memcpy or memset, by the kind rules")
    kind_rule: I16 = _column(np.int16, "index", "the rule of `kinds.RULES` that decided")
    rank: I32 = _column(np.int32, "rank", "rank of the process, 0 where the trace names none")
    device: I32 = _column(np.int32, "ordinal", "device ordinal inside the process")
    stream: I64 = _column(np.int64, "id", "stream id as the writer gives it")
    correlation: I64 = _column(np.int64, "id", "correlation id, -1 if absent or 0")
    launch: I64 = _column(np.int64, "row", "row of its launch in `HostRows`, -1 if there is none")
    graph: I64 = _column(np.int64, "id", "executable graph's id, -1 outside graphs or where the writer gives none")
    graph_node: I64 = _column(np.int64, "id", "graph node id, -1 if absent")
    grid_x: I32 = _column(np.int32, "blocks", "grid, -1 if unknown")
    grid_y: I32 = _column(np.int32, "blocks", "grid, -1 if unknown")
    grid_z: I32 = _column(np.int32, "blocks", "grid, -1 if unknown")
    block_x: I32 = _column(np.int32, "threads", "block, -1 if unknown")
    block_y: I32 = _column(np.int32, "threads", "block, -1 if unknown")
    block_z: I32 = _column(np.int32, "threads", "block, -1 if unknown")
    registers: I32 = _column(np.int32, "registers", "registers a thread, -1 if unknown")
    shared_mem: I32 = _column(np.int32, "B", "shared memory a block, -1 if unknown")
    copied: I64 = _column(np.int64, "B", "bytes of a copy record as written, -1 if absent")
    collective: I32 = _column(np.int32, "row", "row in `Collectives`, -1 if none")


@dataclass(frozen=True, slots=True)
class HostRows(Table):
    """What host threads did: API calls, framework ops, annotations, Python frames; sorted by start, longest first."""

    title: ClassVar[str] = "Host rows"

    start_ns: I64 = _column(np.int64, "ns", "start")
    end_ns: I64 = _column(np.int64, "ns", "end")
    name: I32 = _column(np.int32, "code", "API, op, annotation or frame name")
    category: I8 = _column(np.int8, "HostCategory", "API, cpu_op, annotation or Python frame")
    thread: I32 = _column(np.int32, "row", "row in `Threads`")
    correlation: I64 = _column(np.int64, "id", "correlation id of an API row, -1 if absent")
    detail: I32 = _column(np.int32, "code", "code into `Trace.details` (op shapes and the like), -1 if none")


@dataclass(frozen=True, slots=True)
class Threads(Table):
    """Host threads by rank, process and thread id."""

    title: ClassVar[str] = "Threads"

    rank: I32 = _column(np.int32, "rank", "rank of the process")
    pid: I32 = _column(np.int32, "code", "process id as written, a code into `Trace.names`")
    tid: I32 = _column(np.int32, "code", "thread id as written, a code into `Trace.names`")


@dataclass(frozen=True, slots=True)
class Syncs(Table):
    """Waits that the profiler records on a device's rows (`cuda_sync`); host-side times, never device work."""

    title: ClassVar[str] = "Syncs"

    start_ns: I64 = _column(np.int64, "ns", "start")
    end_ns: I64 = _column(np.int64, "ns", "end")
    name: I32 = _column(np.int32, "code", "kind of wait, such as Stream Wait Event")
    rank: I32 = _column(np.int32, "rank", "rank of the process")
    device: I32 = _column(np.int32, "ordinal", "device ordinal, -1 if unknown")
    stream: I64 = _column(np.int64, "id", "stream that waits, -1 if not one")
    correlation: I64 = _column(np.int64, "id", "correlation id of the waiting call, -1 if absent")
    wait_on_stream: I64 = _column(np.int64, "id", "stream waited for, -1 if unknown")
    wait_on_correlation: I64 = _column(np.int64, "id", "correlation id of the event record waited for, -1 if unknown")


@dataclass(frozen=True, slots=True)
class Overheads(Table):
    """What the profiler itself did (`overhead` rows)."""

    title: ClassVar[str] = "Profiler overhead"

    start_ns: I64 = _column(np.int64, "ns", "start")
    end_ns: I64 = _column(np.int64, "ns", "end")
    name: I32 = _column(np.int32, "code", "kind of overhead, such as Activity Buffer Request")
    rank: I32 = _column(np.int32, "rank", "rank of the process")


@dataclass(frozen=True, slots=True)
class Collectives(Table):
    """What the communication library recorded of collectives; one row for each distinct set of values."""

    title: ClassVar[str] = "Collectives"

    name: I32 = _column(np.int32, "code", "collective, such as allreduce; -1 if absent")
    group: I32 = _column(np.int32, "code", "process group name; -1 if absent")
    dtype: I32 = _column(np.int32, "code", "element type; -1 if absent")
    in_elements: I64 = _column(np.int64, "elements", "elements sent by one rank, -1 if absent")
    out_elements: I64 = _column(np.int64, "elements", "elements received by one rank, -1 if absent")
    group_size: I32 = _column(np.int32, "ranks", "ranks in the group, -1 if absent")


TABLES: tuple[type[Table], ...] = (DeviceOps, HostRows, Threads, Syncs, Overheads, Collectives)

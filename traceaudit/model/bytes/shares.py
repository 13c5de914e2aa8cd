"""What each device op of a device moves and computes: one column of shares, filled from the best source down."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from traceaudit.model.bytes.work import Work
from traceaudit.model.schema import I64

__all__ = ["UNKNOWN", "OpWork", "OpWorkBuilder"]

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class OpWork:
    """Shares by device op.

    Attributes
    ----------
    read_bytes, write_bytes
        0 where nothing is known.
    flop
        `UNKNOWN` where not counted.
    work
        Index into `works`, `UNKNOWN` where no source says anything.
    works
        The calls of ops that the shares are of.
    role
        Index into `roles`, `UNKNOWN` where the op has none in a model; known or not whatever its bytes come from.
    roles
        The parts of a model that ops play.
    """

    read_bytes: I64
    write_bytes: I64
    flop: I64
    work: I64
    works: tuple[Work, ...]
    role: I64
    roles: tuple[str, ...]

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whether a source says what the op moves.

        A kernel that only helps with a call has a share of nothing: what it moves for itself is not known.
        """
        return np.not_equal(self.work, UNKNOWN) & ((self.moved_bytes > 0) | (self.flop > 0))

    @property
    def moved_bytes(self) -> I64:
        """Reads and writes."""
        return self.read_bytes + self.write_bytes

    def of(self, op: int) -> Work | None:
        """Return the call that an op's share is of."""
        index = int(self.work[op])
        return None if index == UNKNOWN else self.works[index]


@dataclass(slots=True)
class OpWorkBuilder:
    """Fills the columns; what is there already stays."""

    count: int
    _read: I64 = field(init=False)
    _write: I64 = field(init=False)
    _flop: I64 = field(init=False)
    _work: I64 = field(init=False)
    _works: dict[Work, int] = field(init=False, default_factory=dict)
    _role: I64 = field(init=False)
    _roles: dict[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nothing known."""
        self._read = np.zeros(self.count, np.int64)
        self._write = np.zeros(self.count, np.int64)
        self._flop = np.full(self.count, UNKNOWN, np.int64)
        self._work = np.full(self.count, UNKNOWN, np.int64)
        self._role = np.full(self.count, UNKNOWN, np.int64)

    def open(self) -> npt.NDArray[np.bool_]:
        """Return which ops have no source yet."""
        return np.equal(self._work, UNKNOWN)

    def put(self, op: int, work: Work, read: int, write: int, flop: int | None) -> None:
        """Set the share of one op, unless it has one; FLOP are added to a share that lacks them."""
        number = UNKNOWN if flop is None else flop
        if self._work[op] == UNKNOWN:
            self._read[op], self._write[op] = read, write
            self._work[op] = self._works.setdefault(work, len(self._works))
            self._flop[op] = number
        elif self._flop[op] == UNKNOWN:
            self._flop[op] = number

    def put_all(self, ops: Iterable[int], work: Work) -> None:
        """Give every op the whole of a call of its own."""
        for op in ops:
            self.put(op, work, work.read_bytes, work.write_bytes, work.flop)

    def name_role(self, op: int, role: str) -> None:
        """Say what part of a model an op plays, whatever its bytes come from."""
        self._role[op] = self._roles.setdefault(role, len(self._roles))

    def done(self) -> OpWork:
        """Return the columns."""
        works, roles = tuple(self._works), tuple(self._roles)
        return OpWork(self._read, self._write, self._flop, self._work, works, self._role, roles)

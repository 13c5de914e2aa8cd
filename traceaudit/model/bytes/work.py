"""Bytes and FLOP of one launch of an op, with who says so and what had to be assumed."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Family", "Source", "Work"]


class Source(StrEnum):
    """Who says how much a kernel moves, the most trustworthy first.

    A user's file speaks for what was measured or derived by hand: where it matches, it goes before all that is derived
    here, and only copy records and the compiler's own annotations come before it.
    """

    REPORTED = "reported"
    ANNOTATED = "annotated"
    SPEC = "spec"
    SHAPE = "shape"
    MODEL = "model"


class Family(StrEnum):
    """What kind of op it is, which decides what lives in cache and how bytes are split over kernels."""

    GEMM = "gemm"
    ATTENTION = "attention"
    EXPERTS = "experts"
    CACHE = "cache"
    POINTWISE = "pointwise"
    NORM = "norm"
    REDUCTION = "reduction"
    MOVEMENT = "movement"
    COMPILED = "compiled"
    COPY = "copy"
    OTHER = "other"

    @property
    def streams(self) -> bool:
        """Whether it reads weights or cache, which a step reads once: they come from memory however small they are."""
        return self in {Family.GEMM, Family.ATTENTION, Family.EXPERTS, Family.CACHE}

    @property
    def activations_only(self) -> bool:
        """Whether it reads what the op before has just written."""
        return self in {Family.POINTWISE, Family.NORM, Family.REDUCTION, Family.MOVEMENT, Family.COMPILED}


@dataclass(frozen=True, slots=True)
class Work:
    """What one launch of an op moves and computes.

    Attributes
    ----------
    read_bytes, write_bytes
        Each input once, each output once; where only the sum is known, all of it counts as read.
    flop
        Of matrix products and attention, a multiply-add counted as two; None where not counted.
    dtype
        Data type whose compute peak bounds it, a key of `Device.tflops`; None where there is none.
    assumption
        What was assumed, in one clause; empty where the shapes leave no choice.
    role
        Part of the model that it belongs to, None where that was not asked for.
    heads
        Of attention: query heads, heads of the keys and values that it reads, and requests; None where not known.
    """

    family: Family
    source: Source
    read_bytes: int
    write_bytes: int = 0
    flop: int | None = None
    dtype: str | None = None
    assumption: str = ""
    role: str | None = None
    heads: tuple[int, int, int] | None = None

    @property
    def moved_bytes(self) -> int:
        """Reads and writes together."""
        return self.read_bytes + self.write_bytes

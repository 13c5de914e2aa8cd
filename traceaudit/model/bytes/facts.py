"""What a model may know beside an op's own operands."""

from dataclasses import dataclass

__all__ = ["Choice", "Facts"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A router's call: so many tokens chose so many different experts each."""

    tokens: int
    per_token: int
    experts: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the run and of the kernel; None where nobody said.

    Attributes
    ----------
    batch, context
        Requests that run, and tokens in the cache of each.
    kernel
        Name of the op's longest kernel, which names element types that lists of tensors do not.
    choices
        Choices of routers anywhere in the trace.
    """

    batch: int | None = None
    context: int | None = None
    kernel: str = ""
    choices: frozenset[Choice] = frozenset()

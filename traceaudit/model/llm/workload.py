"""What runs in a step: how many requests, how long, on how many ranks."""

from dataclasses import dataclass

from traceaudit.errors import UsageError
from traceaudit.model.llm.quantisation import KvDtype

__all__ = ["Parallelism", "Workload"]


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How the model is spread over ranks.

    Attributes
    ----------
    tp
        Ranks that share each attention and dense layer, and the head.
    ep
        Ranks over which the experts of a layer are spread; 1: each expert is sliced over the `tp` ranks.
    dp
        Engines, or data-parallel attention ranks, each with a batch of its own. With `ep` above 1 their tokens meet
        at the experts.
    pp
        Stages that a token passes in turn.
    """

    tp: int = 1
    ep: int = 1
    dp: int = 1
    pp: int = 1

    def __post_init__(self) -> None:
        """Refuse degrees that describe no arrangement of ranks."""
        for flag, value in (("--tp", self.tp), ("--ep", self.ep), ("--dp", self.dp), ("--pp", self.pp)):
            if value < 1:
                raise UsageError(f"{flag} must be at least 1, found {value}")
        world = self.tp * self.dp
        if world % self.ep or (self.tp % self.ep and self.ep % self.tp):
            raise UsageError(
                f"--ep {self.ep} does not divide tp x dp = {world} evenly",
                hint="ep divides tp, or is a multiple of tp that divides tp x dp",
            )

    @property
    def expert_slices(self) -> int:
        """Ranks that share one expert, each with a slice of it."""
        return max(1, self.tp // self.ep)

    @property
    def meeting_engines(self) -> int:
        """Data-parallel ranks whose tokens reach the same experts."""
        return self.dp if self.ep > 1 else 1


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of one step.

    Attributes
    ----------
    contexts
        Tokens in the cache, of each running request.
    tokens_per_request
        Tokens of a request that pass the model in the step: 1, or 1 + draft tokens when verifying.
    draft_passes
        Passes of a draft layer in the step.
    kv_dtype
        How the cache is stored; None takes what the model itself fixes, else bf16.
    """

    contexts: tuple[int, ...]
    tokens_per_request: int = 1
    draft_passes: int = 0
    kv_dtype: KvDtype | None = None
    parallelism: Parallelism = Parallelism()

    def __post_init__(self) -> None:
        """Refuse an empty step and impossible lengths."""
        if not self.contexts:
            raise UsageError("a step needs at least one request", hint="--batch N counts the requests that run")
        if min(self.contexts) < 0:
            raise UsageError(f"--context must be 0 or more, found {min(self.contexts)}")
        if self.tokens_per_request < 1:
            raise UsageError(f"a request runs at least one token a step, found {self.tokens_per_request}")

    @property
    def batch(self) -> int:
        """Requests that run in the step, by engine."""
        return len(self.contexts)

    @property
    def tokens(self) -> int:
        """Tokens that pass the model in the step, by engine."""
        return self.batch * self.tokens_per_request

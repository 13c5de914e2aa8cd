"""Attention that caches keys and values of each token: grouped-query, multi-query, windowed, chunked."""

from dataclasses import dataclass
from typing import Protocol

from traceaudit.model.llm.components import Component, Traffic, Weights
from traceaudit.model.llm.quantisation import KvDtype

__all__ = ["Attention", "GroupedQuery"]


class Attention(Protocol):
    """The token mixer of a layer, seen from what one rank reads and computes in a decode step."""

    @property
    def default_kv_dtype(self) -> KvDtype:
        """How its cache is stored where nobody says."""
        ...

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        ...

    def check(self, tp: int) -> str | None:
        """Return why `tp` ranks cannot share it, or None."""
        ...

    def weights(self, tp: int) -> tuple[Weights, ...]:
        """Return the weights, each read once a step."""
        ...

    def traffic(self, context: int, dtype: KvDtype, tp: int) -> tuple[Traffic, ...]:
        """Return the cache bytes of one request with `context` tokens in the cache."""
        ...

    def core_flop(self, context: int, tp: int) -> float:
        """Return the FLOP of one token beyond the weights' products: scores, mixing, state updates."""
        ...

    def cache_copies(self, tp: int) -> int:
        """Return how many of `tp` ranks hold the same part of the cache."""
        ...


@dataclass(frozen=True, slots=True)
class GroupedQuery:
    """Attention with `kv_heads` heads of keys and values that `heads` query heads share.

    A rank with fewer KV heads than one holds a whole one: the cache stops shrinking at ``tp = kv_heads``.

    Attributes
    ----------
    window
        Only the last so many tokens are read; None: all.
    chunk
        Only tokens of the current chunk of this length are read; None: all.
    gated
        The query projection has a gate as wide as the queries.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    window: int | None = None
    chunk: int | None = None
    gated: bool = False

    @property
    def default_kv_dtype(self) -> KvDtype:
        """Two bytes an element."""
        return KvDtype.BF16

    @property
    def label(self) -> str:
        """Kind, head counts and span."""
        kind = "MHA" if self.kv_heads == self.heads else "MQA" if self.kv_heads == 1 else "GQA"
        span = f", window {self.window}" if self.window else f", chunks of {self.chunk}" if self.chunk else ""
        return f"{kind} {self.heads}/{self.kv_heads} heads of {self.head_dim}{span}"

    def check(self, tp: int) -> str | None:
        """Return why `tp` ranks cannot share it, or None."""
        if self.heads % tp:
            return f"tp {tp} does not divide {self.heads} query heads"
        if self.kv_heads % tp and tp % self.kv_heads:
            return f"tp {tp} and {self.kv_heads} KV heads do not divide each other"
        return None

    def weights(self, tp: int) -> tuple[Weights, ...]:
        """Return q and o, split by query heads, and k and v, split by KV heads down to one."""
        queries = self.hidden * self.heads * (self.head_dim * (2 if self.gated else 1) + self.value_dim)
        one_head = self.hidden * (self.head_dim + self.value_dim)
        return (
            Weights(
                Component.ATTENTION,
                queries + one_head * self.kv_heads,
                queries / tp + one_head * self._local_kv_heads(tp),
            ),
        )

    def traffic(self, context: int, dtype: KvDtype, tp: int) -> tuple[Traffic, ...]:
        """Return the bytes of the keys and values that are read; query tokens of a request share one pass."""
        per_token = self._local_kv_heads(tp) * (self.head_dim + self.value_dim) * dtype.size_bytes
        return (Traffic(Component.KV_CACHE, self._span(context) * per_token),)

    def core_flop(self, context: int, tp: int) -> float:
        """Return the FLOP of scores and mixing: two FLOP for each product, over query heads."""
        return 2 * (self.heads / tp) * (self.head_dim + self.value_dim) * self._span(context)

    def cache_copies(self, tp: int) -> int:
        """Return how many of `tp` ranks hold the same KV head."""
        return max(1, tp // self.kv_heads)

    def _local_kv_heads(self, tp: int) -> float:
        return max(1.0, self.kv_heads / tp)

    def _span(self, context: int) -> int:
        if self.window is not None:
            return min(context, self.window)
        if self.chunk is not None and context > 0:
            return (context - 1) % self.chunk + 1
        return context

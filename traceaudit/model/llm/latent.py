"""Multi-head latent attention (DeepSeek V2 and V3, Kimi K2) in the absorbed form of decoding, and its indexer."""

from dataclasses import dataclass

from traceaudit.model.llm.components import Component, Traffic, Weights
from traceaudit.model.llm.quantisation import KvDtype

__all__ = ["Indexer", "Latent"]

SCALE_GROUP = 128  # weights or elements that share a scale


@dataclass(frozen=True, slots=True)
class Indexer:
    """A small attention that picks which tokens the layer reads (DeepSeek V3.2).

    It reads its own keys of the whole context: fp8, with an fp32 scale for each 128 elements [sglang 0.5.12].
    """

    heads: int
    head_dim: int
    topk: int

    @property
    def key_bytes(self) -> float:
        """Bytes of one key."""
        return self.head_dim + 4 * self.head_dim / SCALE_GROUP

    def weights(self, hidden: int, q_rank: int) -> Weights:
        """Return its weights, which every rank holds."""
        elements = q_rank * self.heads * self.head_dim + hidden * self.head_dim + hidden * self.heads
        return Weights.whole(Component.INDEXER, elements)

    def flop(self, keys: int) -> float:
        """Return the FLOP of one token's scores."""
        return 2.0 * keys * self.heads * self.head_dim


@dataclass(frozen=True, slots=True)
class Latent:
    """Attention whose cache holds one latent for each token, which all heads share.

    The latent cannot be split by heads, so every tensor-parallel rank holds and reads it whole.

    Attributes
    ----------
    q_rank
        Width of the query's low-rank step; None: one full matrix.
    kv_rank, rope_dim, nope_dim, value_dim
        Width of the latent, of the rotary key beside it, and of a head's other parts.
    """

    hidden: int
    heads: int
    q_rank: int | None
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    indexer: Indexer | None = None

    @property
    def default_kv_dtype(self) -> KvDtype:
        """Two bytes an element."""
        return KvDtype.BF16

    @property
    def label(self) -> str:
        """Kind and widths."""
        sparse = f", top {self.indexer.topk} by an indexer" if self.indexer else ""
        return f"MLA {self.heads} heads, latent {self.kv_rank}+{self.rope_dim}{sparse}"

    def check(self, tp: int) -> str | None:
        """Return why `tp` ranks cannot share it, or None."""
        return f"tp {tp} does not divide {self.heads} query heads" if self.heads % tp else None

    def weights(self, tp: int) -> tuple[Weights, ...]:
        """Return the down projections, which each rank holds whole, and those split by heads."""
        query = self.nope_dim + self.rope_dim
        down = self.hidden * (self.kv_rank + self.rope_dim) + self.hidden * (self.q_rank or 0)
        split = self.heads * (
            (self.q_rank or self.hidden) * query
            + self.kv_rank * (self.nope_dim + self.value_dim)
            + self.value_dim * self.hidden
        )
        parts = [
            Weights.whole(Component.ATTENTION_REPLICATED, down),
            Weights.split(Component.ATTENTION, split, tp),
        ]
        if self.indexer:
            parts.append(self.indexer.weights(self.hidden, self.q_rank or self.hidden))
        return tuple(parts)

    def traffic(self, context: int, dtype: KvDtype, tp: int) -> tuple[Traffic, ...]:  # noqa: ARG002  (not split)
        """Return the bytes of the latents that are read, and of the indexer's keys."""
        latents = Traffic(Component.KV_CACHE, self._read(context) * self._entry_bytes(dtype))
        if self.indexer is None:
            return (latents,)
        return (latents, Traffic(Component.INDEXER_CACHE, context * self.indexer.key_bytes))

    def core_flop(self, context: int, tp: int) -> float:
        """Return the FLOP of scores and mixing on the latents themselves, and of the indexer."""
        core = 2 * (self.heads / tp) * self._read(context) * (2 * self.kv_rank + self.rope_dim)
        return core + (self.indexer.flop(context) if self.indexer else 0.0)

    def cache_copies(self, tp: int) -> int:
        """Return `tp`: every rank holds the whole cache."""
        return tp

    def _read(self, context: int) -> int:
        return min(context, self.indexer.topk) if self.indexer else context

    def _entry_bytes(self, dtype: KvDtype) -> float:
        if self.indexer is not None and dtype is KvDtype.FP8:
            # FlashMLA's sparse layout: fp8 latent, an fp32 scale for each 128 of it, bf16 rotary key
            return self.kv_rank * (1 + 4 / SCALE_GROUP) + 2 * self.rope_dim
        return (self.kv_rank + self.rope_dim) * dtype.size_bytes

"""The attention of DeepSeek V4: a sliding window of tokens, and compressed entries of the tokens before it."""

from dataclasses import dataclass

from traceaudit.model.llm.components import Component, Traffic, Weights
from traceaudit.model.llm.latent import Indexer
from traceaudit.model.llm.quantisation import KvDtype

__all__ = ["Compressed"]

SCALE_BYTES = 8  # of one fp8 entry [sglang 0.5.12, deepseek_v4_memory_pool.py]


@dataclass(frozen=True, slots=True)
class Compressed:
    """Multi-query attention on a window, and on one entry for each `ratio` tokens.

    The single KV head is held by every tensor-parallel rank, and so are compressor and indexer. Shapes of the
    projections follow transformers' ``modeling_deepseek_v4``.

    Attributes
    ----------
    ratio
        Tokens that one compressed entry stands for; 0: the layer has a window only.
    indexer
        Picks the entries to read; None: all are read.
    o_rank, o_groups
        Width and number of groups of the output projection's low-rank step.
    """

    hidden: int
    heads: int
    head_dim: int
    rope_dim: int
    q_rank: int
    o_rank: int
    o_groups: int
    window: int
    ratio: int
    indexer: Indexer | None = None

    @property
    def default_kv_dtype(self) -> KvDtype:
        """The engines store fp8 with a bf16 rotary part."""
        return KvDtype.FP8

    @property
    def label(self) -> str:
        """Window, ratio and indexer."""
        sparse = f", top {self.indexer.topk}" if self.indexer else ""
        entries = f" + one entry for {self.ratio} tokens{sparse}" if self.ratio else ""
        return f"MQA {self.heads} heads of {self.head_dim}, window {self.window}{entries}"

    def check(self, tp: int) -> str | None:
        """Return why `tp` ranks cannot share it, or None."""
        if self.heads % tp or self.o_groups % tp:
            return f"tp {tp} does not divide {self.heads} query heads in {self.o_groups} groups"
        return None

    def weights(self, tp: int) -> tuple[Weights, ...]:
        """Return what is split by heads, what each rank holds whole, and compressor and indexer."""
        wide = self.heads * self.head_dim
        output = wide * self.o_rank + self.o_groups * self.o_rank * self.hidden
        parts = [
            Weights.split(Component.ATTENTION, self.q_rank * wide + output, tp),
            Weights.whole(Component.ATTENTION_REPLICATED, self.hidden * (self.q_rank + self.head_dim)),
        ]
        if self.ratio:
            parts.append(Weights.whole(Component.COMPRESSOR, self._compressor()))
        if self.indexer:
            queries = self.q_rank * self.indexer.heads * self.indexer.head_dim
            parts.append(Weights.whole(Component.INDEXER, queries))
        return tuple(parts)

    def traffic(self, context: int, dtype: KvDtype, tp: int) -> tuple[Traffic, ...]:  # noqa: ARG002  (not split)
        """Return the bytes of the entries that are read, and of the indexer's keys."""
        entries = Traffic(Component.KV_CACHE, self._read(context) * self._entry_bytes(dtype))
        if self.indexer is None:
            return (entries,)
        return (entries, Traffic(Component.INDEXER_CACHE, self._entries(context) * self.indexer.key_bytes))

    def core_flop(self, context: int, tp: int) -> float:
        """Return the FLOP of scores and mixing, and of the indexer."""
        core = 4 * (self.heads / tp) * self.head_dim * self._read(context)
        return core + (self.indexer.flop(self._entries(context)) if self.indexer else 0.0)

    def cache_copies(self, tp: int) -> int:
        """Return `tp`: every rank holds the whole cache."""
        return tp

    def _compressor(self) -> int:
        # Key and gate projections; a layer with an indexer keeps two overlapping series, and so does the indexer.
        series = 2 if self.indexer else 1
        elements = 2 * self.hidden * series * self.head_dim
        if self.indexer:
            elements += 2 * self.hidden * series * self.indexer.head_dim + self.hidden * self.indexer.heads
        return elements

    def _entries(self, context: int) -> int:
        return context // self.ratio if self.ratio else 0

    def _read(self, context: int) -> int:
        entries = self._entries(context)
        picked = min(entries, self.indexer.topk) if self.indexer else entries
        return min(context, self.window) + picked

    def _entry_bytes(self, dtype: KvDtype) -> float:
        if dtype is KvDtype.FP8:
            return self.head_dim - self.rope_dim + 2 * self.rope_dim + SCALE_BYTES
        return self.head_dim * dtype.size_bytes

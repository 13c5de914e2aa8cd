"""Attention: queries once, cached keys and values once for each KV head, whatever number of query heads shares it.

Shapes of a paged cache show the whole pool, not what is in use. The tokens read then come from the run's context, else
from the longest sequence that the op was told of, and the assumption says which.
"""

from collections.abc import Callable

from traceaudit.model.bytes.facts import Facts
from traceaudit.model.bytes.operands import OpCall, Operand, compute_dtype
from traceaudit.model.bytes.work import Family, Source, Work

__all__ = ["MODELS", "cache_sizes"]

RANK = 4
LONGER = 4
"""Keys for each query from which on most of them are a cache, not what the step itself has made."""


def _dense(*, causal: int, mask: int | None = None, heads_last: bool = False) -> Callable[[OpCall, Facts], Work | None]:
    """Model attention over contiguous (batch, heads, tokens, dim), or (batch, tokens, heads, dim) with `heads_last`."""

    def model(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001  (every model takes the facts)
        query, key, value = call.tensor(0), call.tensor(1), call.tensor(2)
        if query is None or key is None or value is None:
            return None
        if any(len(item.dims) != RANK for item in (query, key, value)):
            return None
        heads, tokens = (2, 1) if heads_last else (1, 2)
        batch, dim, value_dim = query.dims[0], query.dims[3], value.dims[3]
        asked, cached = query.dims[tokens], key.dims[tokens]
        bias = None if mask is None else call.tensor(mask)
        read = sum(item.size_bytes for item in (query, key, value)) + (bias.size_bytes if bias else 0)
        pairs = _pairs(asked, cached, causal=call.flag(causal))
        flop = 2 * batch * query.dims[heads] * pairs * (dim + value_dim)
        written = batch * query.dims[heads] * asked * value_dim * query.item_bytes
        return Work(
            Family.ATTENTION,
            Source.SHAPE,
            read,
            written,
            flop,
            compute_dtype(query.dtype),
            heads=(query.dims[heads], key.dims[heads], batch),
        )

    return model


def cache_sizes(call: OpCall) -> frozenset[tuple[int, int]]:
    """Return bytes and tokens of the keys and of the values that an attention reads out of a contiguous cache.

    An op that writes as much in one go, out of something with an axis of those tokens, has joined or copied the cache.
    None for other ops.
    """
    if call.name not in _CONTIGUOUS:
        return frozenset()
    query, key, value = (call.tensor(place) for place in range(3))
    if query is None or key is None or value is None or any(len(item.dims) != RANK for item in (query, key)):
        return frozenset()
    tokens = 1 if call.name in _HEADS_LAST else 2
    if key.dims[tokens] < LONGER * query.dims[tokens]:
        return frozenset()
    return frozenset((item.numel * item.item_bytes, key.dims[tokens]) for item in (key, value))


def _pairs(asked: int, cached: int, *, causal: bool) -> int:
    """Count the pairs of query and key: all, or those that a mask from the upper left leaves.

    Examples
    --------
    >>> _pairs(4, 4, causal=True), _pairs(1, 4, causal=False)
    (10, 4)
    """
    if not causal:
        return asked * cached
    whole = min(asked, cached)
    return whole * (whole + 1) // 2 + (asked - whole) * cached


def _paged(
    *, query: int, key: int, value: int | None, tables: int | None, longest: int | None, out: int | None = None
) -> Callable[[OpCall, Facts], Work | None]:
    """Model attention over a pool of cache blocks, by the places of its operands."""

    def model(call: OpCall, facts: Facts) -> Work | None:
        asked, keys = call.tensor(query), call.tensor(key)
        values = keys if value is None else call.tensor(value)
        if asked is None or keys is None or values is None or not asked.dims or len(keys.dims) < RANK:
            return None
        batch = _batch(call, asked, tables, facts)
        tokens, said = _tokens(call, longest, facts)
        if tokens is None:
            return None
        entry = _entry_bytes(keys) + (0 if value is None else _entry_bytes(values))
        heads, dim = asked.dims[-2], asked.dims[-1]
        target = None if out is None else call.tensor(out)
        written = target.size_bytes if target is not None else asked.size_bytes
        rows = asked.numel // (heads * dim) if heads * dim else 0
        return Work(
            Family.ATTENTION,
            Source.SHAPE,
            asked.size_bytes + round(batch * tokens * entry),
            written,
            2 * rows * heads * tokens * 2 * dim,
            compute_dtype(asked.dtype),
            f"{batch} requests of {tokens} cached tokens each: {said}; no window",
        )

    return model


def _batch(call: OpCall, asked: Operand, tables: int | None, facts: Facts) -> int:
    table = None if tables is None else call.tensor(tables)
    if table is not None and table.dims:
        return table.dims[0]
    return facts.batch or asked.dims[0]


def _tokens(call: OpCall, longest: int | None, facts: Facts) -> tuple[int | None, str]:
    if facts.context is not None:
        return facts.context, "the run's context"
    told = None if longest is None else call.integer(longest)
    return told, "the longest sequence that the call names, so an upper bound"


def _entry_bytes(cache: Operand) -> float:
    """Return the bytes of one token in a cache of blocks: the block size is the second dim, or that before the last.

    Layouts: (blocks, block size, heads, dim), and vLLM's (blocks, heads, dim / x, block size, x).
    """
    size = cache.dims[3] if len(cache.dims) > RANK else cache.dims[1]
    per_block = cache.numel // cache.dims[0] if cache.dims[0] else 0
    return per_block / size * cache.item_bytes if size else 0.0


MODELS: dict[str, Callable[[OpCall, Facts], Work | None]] = {
    "aten::scaled_dot_product_attention": _dense(mask=3, causal=5),
    "aten::_scaled_dot_product_flash_attention": _dense(causal=4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _dense(causal=4),
    "aten::_scaled_dot_product_efficient_attention": _dense(mask=3, causal=6),
    "aten::_scaled_dot_product_cudnn_attention": _dense(mask=3, causal=6),
    "aten::_scaled_dot_product_fused_attention_overrideable": _dense(mask=3, causal=5),
    "aten::_cudnn_attention_forward": _dense(mask=3, causal=10),
    "aten::_flash_attention_forward": _dense(causal=8, heads_last=True),
    "aten::_efficient_attention_forward": _dense(mask=3, causal=99, heads_last=True),
    "flash_attn::_flash_attn_forward": _dense(causal=5, heads_last=True),
    # vLLM: (out, query, key cache, value cache, kv heads, scale, block tables, seq lens, block size, max seq len, …)
    "_C::paged_attention_v1": _paged(query=1, key=2, value=3, tables=6, longest=9, out=0),
    "_C::paged_attention_v2": _paged(query=4, key=5, value=6, tables=9, longest=12, out=0),
    "_rocm_C::paged_attention": _paged(query=4, key=5, value=6, tables=9, longest=13, out=0),
    # vLLM's FlashAttention 2: (q, k, v, out, cu_q, cu_k, used_k, leftpad, tables, slopes, max_q, max_k, …)
    "_vllm_fa2_C::varlen_fwd": _paged(query=0, key=1, value=2, tables=8, longest=11),
    # FlashAttention 3: (q, k, v, k_new, v_new, q_v, out, cu_q, cu_k, cu_k_new, used_q, used_k, max_q, max_k, tables, …)
    "_vllm_fa3_C::fwd": _paged(query=0, key=1, value=2, tables=14, longest=13),
    "sgl_kernel::fwd": _paged(query=0, key=1, value=2, tables=14, longest=13),
    # FlashMLA: (q, latent cache, head dim of v, seq lens, tables, …): keys and values are one latent
    "_flashmla_C::fwd_kvcache_mla": _paged(query=0, key=1, value=None, tables=4, longest=None),
    "sgl_kernel::fwd_kvcache_mla": _paged(query=0, key=1, value=None, tables=4, longest=None),
}

_HEADS_LAST = frozenset(
    {"aten::_flash_attention_forward", "aten::_efficient_attention_forward", "flash_attn::_flash_attn_forward"}
)
_CONTIGUOUS = _HEADS_LAST | {name for name in MODELS if "scaled_dot_product" in name or "cudnn_attention" in name}

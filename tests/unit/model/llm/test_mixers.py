"""Weights, cache bytes and FLOP of each kind of attention, against sums made by hand."""

import pytest

from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.compressed import Compressed
from traceaudit.model.llm.latent import Indexer, Latent
from traceaudit.model.llm.linear import DeltaNet
from traceaudit.model.llm.quantisation import KvDtype

BF16, FP8 = KvDtype.BF16, KvDtype.FP8


def llama(**changes):
    return GroupedQuery(**{"hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "value_dim": 128} | changes)


def v3(indexer=None, q_rank=1536):
    return Latent(7168, 128, q_rank, 512, 64, 128, 128, indexer)


def sizes(mixer, tp):
    return {part.component: part.per_rank for part in mixer.weights(tp)}


def bytes_of(mixer, context, dtype, tp=1):
    return {part.component: part.size_bytes for part in mixer.traffic(context, dtype, tp)}


def test_grouped_query_weights_are_split_down_to_one_kv_head():
    """q and o 4096 x 4096 each, k and v 4096 x 1024 each; at tp 16 two ranks hold the same KV head.

    tp 1:  2 x 16 777 216 + 2 x 4 194 304 = 41 943 040
    tp 16: 33 554 432 / 16 + 2 x 4096 x 128 = 2 097 152 + 1 048 576 = 3 145 728
    """
    assert sizes(llama(), 1) == {Component.ATTENTION: 41_943_040}
    assert sizes(llama(), 16) == {Component.ATTENTION: 3_145_728}
    assert (llama().cache_copies(8), llama().cache_copies(16)) == (1, 2)


def test_cache_of_llama_8b():
    """131 072 B a token over 32 layers: 2 x 8 x 128 x 2 = 4096 a layer; at tp 8 a rank has one head: 512."""
    assert bytes_of(llama(), 1024, BF16) == {Component.KV_CACHE: 1024 * 4096}
    assert bytes_of(llama(), 1024, FP8) == {Component.KV_CACHE: 1024 * 2048}
    assert bytes_of(llama(), 1, BF16, tp=8) == bytes_of(llama(), 1, BF16, tp=32) == {Component.KV_CACHE: 512}


def test_core_flop_counts_query_heads():
    """4 x heads x head size for each cached token: 4 x 32 x 128 x 1000."""
    assert llama().core_flop(1000, 1) == 16_384_000
    assert llama().core_flop(1000, 4) == 4_096_000


def test_a_window_and_a_chunk_bound_what_is_read():
    """A window of 128 reads 128 of 1000; in chunks of 300 the 1000th token is the 100th of its chunk."""
    assert bytes_of(llama(window=128), 1000, BF16) == {Component.KV_CACHE: 128 * 4096}
    assert bytes_of(llama(window=128), 100, BF16) == {Component.KV_CACHE: 100 * 4096}
    assert bytes_of(llama(chunk=300), 1000, BF16) == {Component.KV_CACHE: 100 * 4096}
    assert bytes_of(llama(chunk=300), 300, BF16) == {Component.KV_CACHE: 300 * 4096}
    assert bytes_of(llama(chunk=300), 0, BF16) == {Component.KV_CACHE: 0}


def test_gated_queries_double_the_query_projection():
    """Qwen3-Next: 2048 x 16 x 256 x 3 + 2 x 2048 x 2 x 256."""
    gated = GroupedQuery(2048, 16, 2, 256, 256, gated=True)
    assert sizes(gated, 1) == {Component.ATTENTION: 25_165_824 + 2_097_152}


@pytest.mark.parametrize(("tp", "fits"), [(1, True), (4, True), (16, True), (3, False), (64, False)])
def test_ranks_that_cannot_share_heads_are_named(tp, fits):
    assert (llama().check(tp) is None) is fits


def test_kv_heads_must_divide_evenly_too():
    assert llama(heads=24, kv_heads=6).check(4) == "tp 4 and 6 KV heads do not divide each other"


def test_latent_weights_of_v3():
    """Whole on each rank: 7168 x 1536 + 7168 x 576 = 15 138 816.

    Split: 1536 x 128 x 192 + 512 x 128 x 256 + 128 x 128 x 7168 = 171 966 464, by 8: 21 495 808.
    """
    assert sizes(v3(), 8) == {Component.ATTENTION_REPLICATED: 15_138_816, Component.ATTENTION: 21_495_808}


def test_latent_without_query_rank_has_one_full_matrix():
    """7168 x 128 x 192 in place of the two query matrices."""
    got = sizes(v3(q_rank=None), 1)
    assert got[Component.ATTENTION_REPLICATED] == 7168 * 576
    assert got[Component.ATTENTION] == 7168 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168


def test_latent_cache_is_not_split_by_ranks():
    """(512 + 64) x 2 = 1152 B a token and layer, on every rank; absorbed FLOP 2 x heads x (576 + 512)."""
    assert bytes_of(v3(), 10, BF16, tp=8) == {Component.KV_CACHE: 11_520}
    assert bytes_of(v3(), 10, FP8) == {Component.KV_CACHE: 5_760}
    assert v3().core_flop(10, 8) == 2 * 16 * 10 * 1088
    assert v3().cache_copies(8) == 8


def test_sparse_latent_attention_reads_topk_and_all_indexer_keys():
    """DeepSeek V3.2, context 10 000: 2048 latents of 656 B (512 + 4 x 4 + 128), 10 000 keys of 132 B.

    The indexer has 1536 x 64 x 128 + 7168 x 128 + 7168 x 64 = 13 959 168 weights.
    """
    sparse = v3(Indexer(64, 128, 2048))
    got = bytes_of(sparse, 10_000, FP8, tp=8)
    assert got == {Component.KV_CACHE: 2048 * 656, Component.INDEXER_CACHE: 1_320_000}
    assert bytes_of(sparse, 100, BF16)[Component.KV_CACHE] == 100 * 1152
    assert sizes(sparse, 8)[Component.INDEXER] == 13_959_168
    assert sparse.core_flop(10_000, 8) == 2 * 16 * 2048 * 1088 + 2 * 10_000 * 64 * 128


def v4(ratio, indexer=None):
    return Compressed(4096, 64, 512, 64, 1024, 1024, 8, 128, ratio, indexer)


def test_weights_of_v4_flash():
    """Split: 1024 x 32768 + 32768 x 1024 + 8192 x 4096 = 100 663 296; whole: 4096 x (1024 + 512) = 6 291 456.

    Compressor, ratio 128: 2 x 4096 x 512 = 4 194 304; ratio 4: twice that, and the indexer's
    2 x 4096 x 256 + 4096 x 64; its queries 1024 x 64 x 128 = 8 388 608.
    """
    assert sizes(v4(0), 4) == {Component.ATTENTION: 25_165_824, Component.ATTENTION_REPLICATED: 6_291_456}
    assert sizes(v4(128), 4)[Component.COMPRESSOR] == 4_194_304
    indexed = sizes(v4(4, Indexer(64, 128, 512)), 4)
    assert indexed[Component.COMPRESSOR] == 8_388_608 + 2_097_152 + 262_144
    assert indexed[Component.INDEXER] == 8_388_608


def test_cache_of_v4_flash_at_320_tokens():
    """An entry is 584 B. Window 128; ratio 4 adds 80 entries and 80 keys of 132 B; ratio 128 adds 2 entries."""
    assert bytes_of(v4(0), 320, FP8) == {Component.KV_CACHE: 128 * 584}
    assert bytes_of(v4(128), 320, FP8) == {Component.KV_CACHE: 130 * 584}
    assert bytes_of(v4(4, Indexer(64, 128, 512)), 320, FP8) == {
        Component.KV_CACHE: 208 * 584,
        Component.INDEXER_CACHE: 80 * 132,
    }
    assert bytes_of(v4(0), 320, BF16) == {Component.KV_CACHE: 128 * 1024}


def test_the_indexer_of_v4_bounds_long_contexts():
    """At 1 M tokens: 262 144 entries, 512 read, all keys scored. FLOP 4 x 16 x 512 x 640 + 2 x 262 144 x 64 x 128."""
    indexed = v4(4, Indexer(64, 128, 512))
    assert bytes_of(indexed, 1 << 20, FP8)[Component.KV_CACHE] == (128 + 512) * 584
    assert indexed.core_flop(1 << 20, 4) == 4 * 16 * 512 * 640 + 2 * 262_144 * 64 * 128
    assert v4(0).core_flop(64, 4) == 4 * 16 * 512 * 64


def test_a_linear_layers_state_does_not_grow():
    """Qwen3-Next: state 32 x 128 x 128 x 4 = 2 097 152 B, tail (4096 + 2 x 2048) x 3 x 2 = 49 152 B; read and written.

    Weights: 2048 x (4096 + 8192 + 64) + 4096 x 2048 + 8192 x 4 = 33 718 272.
    """
    net = DeltaNet(2048, 16, 32, 128, 128, 4)
    assert bytes_of(net, 10, BF16) == bytes_of(net, 100_000, BF16) == {Component.LINEAR_STATE: 2 * 2_146_304}
    assert bytes_of(net, 10, BF16, tp=2) == {Component.LINEAR_STATE: 2_146_304}
    assert sizes(net, 1) == {Component.LINEAR_ATTENTION: 33_718_272}
    assert net.core_flop(7, 2) == 3 * 32 * 128 * 128
    assert net.cache_copies(2) == 1


@pytest.mark.parametrize("mixer", [v3(), v4(0), DeltaNet(2048, 16, 32, 128, 128, 4)])
def test_other_mixers_refuse_odd_ranks(mixer):
    assert mixer.check(3)
    assert mixer.check(2) is None
    assert mixer.label


@pytest.mark.parametrize("mixer", [v3(), llama(), DeltaNet(2048, 16, 32, 128, 128, 4)])
def test_caches_are_bf16_unless_the_engines_fix_another(mixer):
    assert mixer.default_kv_dtype is BF16
    assert v4(0).default_kv_dtype is FP8


def test_labels_name_the_kind():
    assert llama().label.startswith("GQA 32/8")
    assert llama(kv_heads=32, chunk=8).label == "MHA 32/32 heads of 128, chunks of 8"
    assert llama(kv_heads=1, window=8).label == "MQA 32/1 heads of 128, window 8"
    assert "top 512" in v4(4, Indexer(64, 128, 512)).label
    assert "indexer" in v3(Indexer(64, 128, 2048)).label

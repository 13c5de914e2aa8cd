"""The floor against sums made by hand, and against figures worked out apart for well-known models."""

import pytest

from traceaudit.analyses.roofline import Measurement, Napkin, napkin, roofline
from traceaudit.errors import InvariantError, UsageError
from traceaudit.model.hardware import Peaks, lookup
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.presets import preset
from traceaudit.model.llm.quantisation import KvDtype, overridden
from traceaudit.model.llm.workload import Parallelism, Workload
from traceaudit.model.results.roofline import ByteRange, Reading

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
WORKSTATION, SERVER = "RTX PRO 6000 Blackwell Workstation", "RTX PRO 6000 Blackwell Server"
ONE_EXPERT = 3 * 7168 * 2048


def floor_of(name, gpu, batch, context, *, weights=None, kv=None, measurement=Measurement(), **degrees):  # noqa: B008
    model = architecture(preset(name).config, name=name)
    if weights:
        model = model.with_formats(overridden(model.formats, weights))
    work = Workload((context,) * batch, kv_dtype=kv, parallelism=Parallelism(**degrees))
    return roofline(model, work, Peaks.of(lookup(gpu)), measurement)


def moe_layer():
    """Return one MoE layer with 256 experts of 2048, block-fp8, bf16 router and head of 1024."""
    return architecture(
        {
            "model_type": "qwen3_moe",
            "hidden_size": 7168,
            "num_hidden_layers": 1,
            "num_attention_heads": 56,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 18432,
            "moe_intermediate_size": 2048,
            "num_experts": 256,
            "num_experts_per_tok": 8,
            "vocab_size": 1024,
            "torch_dtype": "bfloat16",
            "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        },
        name="layer",
    )


def component(result, name):
    return next(item for item in result.components if item.name == name)


def test_one_moe_layer_at_batch_32():
    """Attention 7168 x 56 x 128 x 2 + 2 x 7168 x 8 x 128 = 117 440 512; router 3 670 016; head 14 680 064.

    An expert has 44 040 192 weights: 8 of them 352 321 536, 163.3138 of them 7 192 373 132, all 11 274 289 152.
    Weights least 488 112 128, expected 7 328 163 724, most 11 410 079 744; each fp8 weight weighs 1 + 4/16384.
    Cache 2 x 8 x 128 x 2 x 32 x 1024 = 134 217 728. Over 4800 GB/s: 129 652 and 1 554 663 ns, within 0.2 %.
    """
    result = roofline(moe_layer(), Workload((1024,) * 32), Peaks.of(lookup(H200)))
    scale = 1 + 4 / 16384
    assert component(result, "attention").size.expected == round(117_440_512 * scale)
    assert component(result, "routed_experts").size == ByteRange(
        round(8 * ONE_EXPERT * scale), round(163.31384595038296 * ONE_EXPERT * scale), round(256 * ONE_EXPERT * scale)
    )
    assert component(result, "router").size.expected == 3_670_016
    assert component(result, "lm_head").size.expected == 14_680_064
    assert component(result, "norms").size.expected == 3 * 7168 * 2
    assert component(result, "embedding").size.expected == 32 * 7168 * 2
    weights = result.weight_bytes
    assert weights.minimum == pytest.approx(488_112_128, rel=2e-3)
    assert weights.expected == pytest.approx(7_328_163_724, rel=5e-4)
    assert weights.maximum == pytest.approx(11_410_079_744, rel=5e-4)
    assert result.kv_bytes == 134_217_728
    assert result.floor.minimum_ns == pytest.approx(129_652, rel=2e-3)
    assert result.floor.expected_ns == pytest.approx(1_554_663, rel=5e-4)
    assert result.floor.bound == "memory"
    assert result.gap is None


def test_at_batch_one_the_bounds_agree():
    """8 experts in any case; (488 112 128 + 4 194 304) / 4800 GB/s = 102 564 ns."""
    result = roofline(moe_layer(), Workload((1024,)), Peaks.of(lookup(H200)))
    weights = result.weight_bytes
    assert weights.minimum == weights.expected == weights.maximum
    assert result.kv_bytes == 4_194_304
    assert result.floor.expected_ns == pytest.approx(102_564, rel=1e-3)
    assert any("one token touches 8 of 256" in text for text in result.assumptions)


def test_cache_of_cached_tokens_only():
    """2 x 8 x 128 x 2 x 16 x 10 240 = 671 088 640 bytes, KV heads and not the 80 query heads."""
    layer = architecture(
        {
            "model_type": "llama",
            "hidden_size": 10240,
            "num_hidden_layers": 1,
            "num_attention_heads": 80,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 1024,
            "vocab_size": 1024,
        },
        name="layer",
    )
    result = roofline(layer, Workload((10_240,) * 16), Peaks.of(lookup(H200)))
    assert result.kv_bytes == 671_088_640


@pytest.mark.parametrize(
    ("batch", "context", "weights", "cache", "floor_ms", "compute_ms"),
    [
        (1, 1024, 15.010, 0.134, 4.52, 0.016),
        (16, 1024, 15.010, 2.147, 5.12, 0.25),
        (32, 2048, 15.010, 8.590, 7.05, 0.52),
    ],
)
def test_llama_8b_in_bf16(batch, context, weights, cache, floor_ms, compute_ms):
    """7.505 B weights of 2 B are read, 131 072 B of cache a token; over 3350 GB/s and 989.4 TFLOP/s."""
    result = floor_of("llama-3-8b", H100, batch, context)
    assert result.weight_bytes.expected / 1e9 == pytest.approx(weights, abs=6e-4)
    assert result.kv_bytes / 1e9 == pytest.approx(cache, abs=6e-4)
    assert result.floor.expected_ns / 1e6 == pytest.approx(floor_ms, abs=6e-3)
    assert result.floor.compute_ns / 1e6 == pytest.approx(compute_ms, rel=0.02)


@pytest.mark.parametrize(
    ("batch", "context", "kv", "cache", "floor_ms"),
    [(1, 1024, None, 0.084, 5.29), (32, 2048, None, 5.369, 6.87), (32, 2048, KvDtype.FP8, 2.684, 6.07)],
)
def test_llama_70b_in_fp8_on_four(batch, context, kv, cache, floor_ms):
    """A rank reads 17.638 GB: (70.55 - 2 x 1.05) B / 4 in fp8, and a head of 0.525 GB in bf16; norms add 2.6 MB."""
    result = floor_of("llama-3-70b", H100, batch, context, weights="fp8", kv=kv, tp=4)
    assert result.weight_bytes.expected / 1e9 == pytest.approx(17.638, abs=4e-3)
    assert result.kv_bytes / 1e9 == pytest.approx(cache, abs=6e-4)
    assert result.floor.expected_ns / 1e6 == pytest.approx(floor_ms, abs=6e-3)


def test_all_reduces_of_llama_70b():
    """2 x 80 + 1 messages of 32 x 8192 x 2 = 524 288 B, each sent 1.5 times: 126.6 MB, 0.28 ms at 450 GB/s."""
    exchange = floor_of("llama-3-70b", H100, 32, 2048, weights="fp8", tp=4).communication
    reduce = exchange.messages[0]
    assert (reduce.name, reduce.calls, reduce.sent_bytes) == ("all_reduce", 161, 161 * 524_288 * 3 // 2)
    assert exchange.messages[1].sent_bytes == 32 * 128_256 * 2 * 3 // 4
    assert reduce.sent_bytes / exchange.link_gbps / 1e6 == pytest.approx(0.28, abs=5e-3)
    assert exchange.latency_ns == (162 * 5_000, 162 * 10_000)
    assert exchange.calls == 162


@pytest.mark.parametrize(
    ("batch", "context", "weights", "cache", "h100_ms", "h200_ms", "compute_ms"),
    [
        (1, 1024, 5.703, 0.072, 1.72, 1.20, 0.007),
        (16, 2048, 35.711, 2.303, 11.35, 7.92, 0.12),
        (32, 2048, 55.305, 4.605, 17.88, 12.48, 0.25),
        (128, 4096, 83.502, 36.843, 35.92, 25.07, 1.27),
    ],
)
def test_deepseek_v3_on_eight(batch, context, weights, cache, h100_ms, h200_ms, compute_ms):
    """Figures worked out apart, without norms and embedding rows (3 MB); their compute takes fp8 for every product.

    At B=16: replicated 0.924, split attention 1.312, dense 0.149, routed 32.564, shared 0.319, router 0.213,
    head 0.232.
    """
    for gpu, floor_ms in ((H100, h100_ms), (H200, h200_ms)):
        result = floor_of("deepseek-v3", gpu, batch, context, tp=8)
        assert result.weight_bytes.expected / 1e9 == pytest.approx(weights, abs=4e-3)
        assert result.kv_bytes / 1e9 == pytest.approx(cache, abs=6e-4)
        assert result.floor.expected_ns / 1e6 == pytest.approx(floor_ms, abs=6e-3)
        assert result.flop / 1978.9e9 == pytest.approx(compute_ms, abs=6e-3)
        assert result.floor.compute_ns >= result.flop / 1978.9e3


def test_parts_of_deepseek_v3():
    result = floor_of("deepseek-v3", H200, 16, 2048, tp=8)
    expected = {
        "attention_replicated": 0.924,
        "attention": 1.312,
        "dense_ffn": 0.149,
        "routed_experts": 32.564,
        "shared_experts": 0.319,
        "router": 0.213,
        "lm_head": 0.232,
    }
    for name, size in expected.items():
        assert component(result, name).size.expected / 1e9 == pytest.approx(size, abs=6e-4)
    assert component(result, "kv_cache").sharing == "replicated"
    assert component(result, "attention").sharing == "split"


def test_what_does_not_fit_is_called_hypothetical():
    """671 GB over 8 is 83.9 GB: more than 80 GB cards have to spare, less than an H200 has."""
    assert any("hypothetical" in text for text in floor_of("deepseek-v3", H100, 1, 1024, tp=8).assumptions)
    assert not any("hypothetical" in text for text in floor_of("deepseek-v3", H200, 1, 1024, tp=8).assumptions)


@pytest.mark.parametrize(
    ("batch", "size", "workstation_ms", "server_ms"),
    [(1, 3.87, 2.16, 2.42), (8, 9.39, 5.24, 5.88), (16, 14.69, 8.20, 9.20), (32, 22.71, 12.67, 14.22)],
)
def test_the_founding_model_on_its_cards(batch, size, workstation_ms, server_ms):
    """DeepSeek-V4-Flash, TP4, 320 tokens in the cache; 44.2, 80.8 and 136.1 of 256 experts at 8, 16 and 32."""
    for gpu, floor_ms in ((WORKSTATION, workstation_ms), (SERVER, server_ms)):
        result = floor_of("deepseek-v4-flash", gpu, batch, 320, tp=4)
        assert (result.weight_bytes.expected + result.kv_bytes) / 1e9 == pytest.approx(size, abs=6e-3)
        assert result.floor.expected_ns / 1e6 == pytest.approx(floor_ms, abs=6e-3)


def test_parts_of_the_founding_model():
    """GB at B=16; compressor 0.619 and indexer queries 0.176 together are the 0.80 that does not shard."""
    result = floor_of("deepseek-v4-flash", SERVER, 16, 320, tp=4)
    expected = {
        "routed_experts": 11.62,
        "attention": 1.08,
        "attention_replicated": 0.27,
        "shared_experts": 0.27,
        "lm_head": 0.26,
        "router": 0.18,
        "hyper_connections": 0.135,
    }
    for name, size in expected.items():
        assert component(result, name).size.expected / 1e9 == pytest.approx(size, abs=6e-3)
    whole = component(result, "compressor").size.expected + component(result, "indexer").size.expected
    assert whole / 1e9 == pytest.approx(0.80, abs=6e-3)
    assert result.kv_bytes / 1e9 == pytest.approx(0.07, abs=2e-3)
    assert result.communication.messages[0].calls == 87
    assert result.communication.link == "PCIe"


def test_the_founding_napkin():
    """13e9 x 0.5 B / 4 = 1.625 GB: 0.855 ms at 1900 GB/s, 0.907 at 1792, 1.018 at 1597."""
    for gbps, time_ns in ((1900, 855_263), (1792, 906_808), (1597, 1_017_533)):
        work = Workload((0,), parallelism=Parallelism(tp=4))
        result = napkin(Napkin(13e9, 4), work, Peaks.of(None, gbps=gbps))
        assert result.weight_bytes == ByteRange(1_625_000_000, 1_625_000_000, 1_625_000_000)
        assert result.floor.minimum_ns == result.floor.expected_ns == time_ns
        assert result.kv_bytes == 0
        assert result.floor.compute_ns is None
        assert result.communication.messages == ()


def test_a_napkin_at_batch_16_says_what_it_leaves_out():
    result = napkin(Napkin(13e9, 4), Workload((0,) * 16), Peaks.of(lookup(SERVER)))
    assert any("16 requests touch more weights" in text for text in result.assumptions)
    assert result.flop == round(2 * 13e9 * 16)


@pytest.mark.parametrize(("batch", "step_ns", "factor"), [(16, 571_428_571, 62), (8, 285_714_286, 49)])
def test_factors_of_the_founding_story(batch, step_ns, factor):
    """571.4 / 9.198 = 62, 285.7 / 5.882 = 48.6: numerator and denominator are named."""
    measured = Measurement(readings=(Reading(step_ns, f"{batch} running / 28 tokens/s"),))
    gap = floor_of("deepseek-v4-flash", SERVER, batch, 320, tp=4, measurement=measured).gap
    assert round(gap.factor) == factor
    assert gap.numerator == f"step of {step_ns / 1e6:,.2f} ms ({batch} running / 28 tokens/s)"
    assert f"at batch {batch}" in gap.denominator
    assert gap.factor_of_minimum > gap.factor


def test_further_readings_keep_their_factors():
    readings = (Reading(2_000_000, "a"), Reading(4_000_000, "b"))
    result = floor_of("llama-3-8b", H100, 1, 0, measurement=Measurement(readings=readings))
    (other,) = result.gap.others
    assert (other[0].source, other[1]) == ("b", 2 * result.gap.factor)


def test_tokens_per_second_at_the_floor():
    """Two engines of 16 requests that gain 2.5 tokens a step: 80 tokens over the floor."""
    single = floor_of("llama-3-8b", H100, 16, 1024)
    assert single.tokens_per_second_at_floor == pytest.approx(16e9 / single.floor.expected_ns)
    double = floor_of("llama-3-8b", H100, 16, 1024, dp=2, measurement=Measurement(accept_length=2.5))
    assert double.tokens_per_second_at_floor == pytest.approx(80e9 / double.floor.expected_ns)


def test_verifying_drafts_shares_weights_and_cache():
    """3 draft tokens: 64 tokens verified in all; cache as before, more experts, and three passes of the draft layer.

    A pass reads about a 61st of the layers at batch 16 (a layer with experts is a little above the mean) and the head.
    A model without a draft layer says so, and computes four times as much.
    """
    model = architecture(preset("deepseek-v3").config, name="v3")
    peaks = Peaks.of(lookup(H200))
    plain = roofline(model, Workload((2048,) * 16, parallelism=Parallelism(tp=8)), peaks)
    work = Workload((2048,) * 16, tokens_per_request=4, draft_passes=3, parallelism=Parallelism(tp=8))
    drafted = roofline(model, work, peaks)
    assert drafted.kv_bytes == plain.kv_bytes
    assert round(drafted.experts.expected, 1) == 222.4
    one_pass = component(drafted, "draft").size.expected / 3
    layer = (plain.weight_bytes.expected - component(plain, "lm_head").size.expected) / 61
    assert one_pass == pytest.approx(layer + component(plain, "lm_head").size.expected, rel=0.06)
    dense = architecture(preset("llama-3-8b").config, name="m")
    llama = roofline(dense, Workload((1024,), tokens_per_request=4, draft_passes=3), peaks)
    assert llama.flop == 4 * roofline(dense, Workload((1024,)), peaks).flop
    assert any("draft model is not counted" in text for text in llama.assumptions)


def test_large_batches_are_bound_by_compute():
    """8B at batch 4096 without cache: 2 x 4096 x 7.505e9 / 989.4e12 = 62.1 ms; 15 GB take 4.5 ms."""
    result = floor_of("llama-3-8b", H100, 4096, 0)
    assert result.floor.bound == "compute"
    assert result.floor.expected_ns == result.floor.compute_ns == pytest.approx(62.1e6, rel=2e-3)


def test_small_weights_on_a_device_without_their_peak():
    """An A100 has no fp8: the bytes stay one a weight, the products are held against bf16's 312."""
    result = floor_of("llama-3-8b", "NVIDIA A100-SXM4-80GB", 1, 1024, weights="fp8")
    assert result.peak_tflops["fp8"] == 312
    assert any("fp8 products are held against the bf16 peak" in text for text in result.assumptions)


def test_pipeline_stages_add_up():
    """Two stages read half each, in turn: the floor stays, the bytes halve."""
    one, two = floor_of("llama-3-8b", H100, 4, 1024), floor_of("llama-3-8b", H100, 4, 1024, pp=2)
    assert two.weight_bytes.expected == pytest.approx(one.weight_bytes.expected / 2, abs=9)
    assert two.floor.expected_ns == pytest.approx(one.floor.expected_ns, abs=9)


def test_expert_parallel_engines_exchange_tokens():
    """dp 8, ep 8, batch 16 each: 58 layers send 16 x 8 x 7168 x 1 B out and twice that back; no all-reduce at tp 1."""
    result = floor_of("deepseek-v3", H200, 16, 2048, dp=8, ep=8)
    dispatch, combine = result.communication.messages
    assert (dispatch.name, dispatch.calls, dispatch.sent_bytes) == ("expert_dispatch", 58, 58 * 16 * 8 * 7168)
    assert (combine.name, combine.sent_bytes) == ("expert_combine", 2 * dispatch.sent_bytes)
    assert result.experts.tokens == 128
    assert any("waits for the rank with the most" in text for text in result.assumptions)


def test_replicated_kv_heads_are_named():
    result = floor_of("llama-3-8b", H100, 1, 1024, tp=16)
    assert component(result, "kv_cache").sharing == "2 copies"
    assert any("2-fold" in text for text in result.assumptions)


def test_linear_state_counts_as_cache():
    """36 layers of 2 x 2 146 304 B, 12 of 2 x 2 x 256 x 2 x 1000 B."""
    result = floor_of("qwen3-next-80b-a3b", H200, 1, 1000)
    assert component(result, "linear_state").size.expected == 36 * 4_292_608
    assert result.kv_bytes == 36 * 4_292_608 + 12 * 2_048_000


def test_a_peak_above_the_table_is_remarked():
    model = architecture(preset("llama-3-8b").config, name="m")
    result = roofline(model, Workload((0,)), Peaks.of(lookup(SERVER), gbps=1900))
    assert any("above the 1,597 GB/s known of RTX PRO 6000" in text for text in result.assumptions)


def test_doubtful_peaks_are_remarked():
    assert any("that peak is uncertain" in text for text in floor_of("llama-3-8b", "NVIDIA GB10", 1, 0).assumptions)


def test_devices_without_links_have_unknown_communication():
    model = architecture(preset("llama-3-8b").config, name="m")
    exchange = roofline(model, Workload((0,), parallelism=Parallelism(tp=2)), Peaks.of(None, gbps=1000)).communication
    assert (exchange.link, exchange.transfer_ns, exchange.latency_ns) == (None, None, None)
    assert exchange.sent_bytes > 0


@pytest.mark.parametrize(
    "build",
    [
        lambda: Workload(()),
        lambda: Workload((-1,)),
        lambda: Workload((1,), tokens_per_request=0),
        lambda: Parallelism(tp=0),
        lambda: Parallelism(tp=4, ep=3),
        lambda: Parallelism(tp=6, dp=2, ep=4),
    ],
)
def test_impossible_workloads_are_refused(build):
    with pytest.raises(UsageError):
        build()


def test_too_many_ranks_are_refused():
    with pytest.raises(UsageError, match="tp 3"):
        floor_of("llama-3-8b", H100, 1, 0, tp=3)


def test_unquantised_latent_attention_has_no_dequantised_form():
    assert not any("kv_b" in text for text in floor_of("deepseek-v3", H200, 1, 0, weights="bf16", tp=8).assumptions)


def test_no_trace_no_findings():
    assert floor_of("llama-3-8b", H200, 1, 0).completeness.verdict == "complete"


def test_bytes_keep_their_order():
    with pytest.raises(InvariantError):
        ByteRange(2, 1, 3)


def test_lengths_may_differ():
    """Windows cut each request alone: 100 and 1000 tokens in a window of 128 are 100 + 128, half of the layers."""
    model = architecture(preset("gpt-oss-20b").config, name="m")
    mixed = roofline(model, Workload((100, 1000)), Peaks.of(lookup(H100)))
    assert mixed.kv_bytes == 2 * 8 * 64 * 2 * (12 * (100 + 128) + 12 * 1100)
    assert mixed.setting.context_mean == 550

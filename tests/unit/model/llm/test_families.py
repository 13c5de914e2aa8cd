"""Configurations by the names of their fields: what is recognised, and what is refused rather than guessed."""

import pytest

from traceaudit.errors import ConfigError, UsageError
from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.compressed import Compressed
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.ffn import Dense, Experts
from traceaudit.model.llm.latent import Latent
from traceaudit.model.llm.linear import DeltaNet


def config(**changes):
    base = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 96,
        "vocab_size": 100,
        "torch_dtype": "bfloat16",
    }
    return {key: value for key, value in (base | changes).items() if value is not ...}


def read(**changes):
    return architecture(config(**changes), name="m")


def windows(model):
    return [layer.attention.window for layer in model.layers]


def sparse(model):
    return [isinstance(layer.ffn, Experts) for layer in model.layers]


MOE = {"num_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 32}


def test_a_dense_model():
    """4 layers of 64 x (8 x 8 x 2 + 2 x 8 x 2) + 3 x 64 x 96 + 2 x 64 = 28 800; tables 2 x 6400; last norm 64."""
    model = read()
    assert model.layers[0].attention == GroupedQuery(64, 8, 2, 8, 8)
    assert model.layers[0].ffn == Dense(64, 96)
    assert model.parameters().total == 4 * 28_800 + 12_800 + 64
    assert read(tie_word_embeddings=True).parameters().total == 4 * 28_800 + 6_400 + 64


def test_head_size_may_differ_from_the_quotient():
    assert read(model_type="qwen3", head_dim=32).layers[0].attention.head_dim == 32
    with pytest.raises(ConfigError, match="no head_dim"):
        read(num_attention_heads=7)


def test_missing_kv_heads_mean_one_for_each_query_head():
    assert read(num_key_value_heads=...).layers[0].attention.kv_heads == 8


@pytest.mark.parametrize("name", ["text_config", "llm_config", "language_config"])
def test_nested_language_models_are_found(name):
    inner = config(model_type="gemma3_text", torch_dtype=...)
    model = architecture({"model_type": "x", name: inner, "torch_dtype": "float16"}, name="m")
    assert (model.family, model.formats.base.name) == ("gemma3_text", "fp16")
    assert model.tied


@pytest.mark.parametrize(
    "count", ["n_routed_experts", "num_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"]
)
def test_the_number_of_experts_has_many_names(count):
    model = read(model_type="qwen3_moe", num_experts_per_tok=2, moe_intermediate_size=32, **{count: 16})
    assert model.layers[0].ffn == Experts(64, 16, 2, 32)


@pytest.mark.parametrize("sign", ["num_experts_per_tok", "moe_intermediate_size", "n_shared_experts"])
def test_signs_of_experts_without_a_number_are_refused(sign):
    with pytest.raises(ConfigError, match="no dense model"):
        read(**{sign: 2})


def test_no_experts_said_is_dense():
    assert read(num_experts=0, num_experts_per_tok=2).layers[0].ffn == Dense(64, 96)


def test_senseless_numbers_of_experts_are_refused():
    with pytest.raises(ConfigError, match="none of num_experts_per_tok"):
        read(num_experts=16, moe_intermediate_size=32)
    with pytest.raises(ConfigError, match="20 of 16 experts"):
        read(num_experts=16, num_experts_per_tok=20, moe_intermediate_size=32)


def test_experts_as_wide_as_intermediate_size():
    mixtral = read(model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
    assert mixtral.layers[0].ffn == Experts(64, 8, 2, 96)
    assert not mixtral.notes
    unlisted = read(model_type="dots1", num_experts=8, num_experts_per_tok=2)
    assert any("width of an expert" in note for note in unlisted.notes)


@pytest.mark.parametrize(
    ("changes", "width"),
    [
        ({"n_shared_experts": 2}, 64),
        ({"shared_expert_intermediate_size": 40}, 40),
        ({}, 0),
        ({"model_type": "llama4_text", "intermediate_size_mlp": 200}, 32),
    ],
)
def test_shared_experts(changes, width):
    assert read(**(MOE | {"model_type": "qwen2_moe"} | changes)).layers[-1].ffn.shared_width == width


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"first_k_dense_replace": 1}, [False, True, True, True]),
        ({"mlp_only_layers": [2]}, [True, True, False, True]),
        ({"decoder_sparse_step": 2}, [False, True, False, True]),
        ({"interleave_moe_layer_step": 2}, [False, True, False, True]),
        ({"moe_layer_freq": 2}, [True, False, True, False]),
        ({"moe_layer_freq": [0, 1, 1, 0]}, [False, True, True, False]),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "moe"]}, [False, True, True, True]),
        ({"moe_layers": [1, 3]}, [False, True, False, True]),
    ],
)
def test_rules_for_dense_layers(changes, expected):
    assert sparse(read(**(MOE | {"model_type": "deepseek_v2"} | changes))) == expected


def test_windows_by_list_pattern_and_family():
    listed = ["sliding_attention", "full_attention"] * 2
    assert windows(read(layer_types=listed, sliding_window=16)) == [16, None, 16, None]
    assert windows(read(model_type="gpt_oss", sliding_window=16, **MOE)) == [16, None, 16, None]
    assert windows(read(model_type="gemma3_text", sliding_window=16, sliding_window_pattern=3)) == [16, 16, None, 16]
    assert windows(read(model_type="gemma3_text", sliding_window=16, num_hidden_layers=6)) == [16] * 5 + [None]
    assert windows(read(model_type="mistral", sliding_window=16)) == [16] * 4
    assert windows(read(model_type="mistral", sliding_window=None)) == [None] * 4


def test_qwen2_windows_are_off_unless_asked_for():
    off = {"model_type": "qwen2", "sliding_window": 16, "max_window_layers": 3}
    assert windows(read(**off)) == [None] * 4
    assert windows(read(**off, use_sliding_window=True)) == [None, None, None, 16]


def test_chunks_of_llama4():
    """Layers without rotary embedding see everything: every fourth, or those whose flag is 0."""
    ruled = read(model_type="llama4_text", attention_chunk_size=32)
    assert [layer.attention.chunk for layer in ruled.layers] == [32, 32, 32, None]
    listed = read(model_type="llama4_text", attention_chunk_size=32, no_rope_layers=[0, 1, 0, 1])
    assert [layer.attention.chunk for layer in listed.layers] == [None, 32, None, 32]


LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
}


@pytest.mark.parametrize(
    "rule", [{"full_attention_interval": 4}, {"layer_types": ["linear_attention"] * 3 + ["full_attention"]}]
)
def test_hybrid_layers(rule):
    model = read(model_type="qwen3_next", **LINEAR, **rule)
    assert [type(layer.attention) for layer in model.layers] == [DeltaNet, DeltaNet, DeltaNet, GroupedQuery]
    assert model.layers[3].attention.gated


MLA = {
    "model_type": "deepseek_v3",
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}


def test_latent_attention_is_told_by_its_rank():
    model = read(**MLA)
    assert model.layers[0].attention == Latent(64, 8, 24, 16, 4, 8, 8)
    assert read(**MLA | {"q_lora_rank": None}).layers[0].attention.q_rank is None
    indexed = read(**MLA, index_topk=7, index_n_heads=2, index_head_dim=8)
    assert indexed.layers[0].attention.indexer.topk == 7


V4 = {
    "model_type": "deepseek_v4",
    "num_key_value_heads": 1,
    "head_dim": 32,
    "q_lora_rank": 16,
    "o_lora_rank": 8,
    "o_groups": 2,
    "sliding_window": 128,
    "index_n_heads": 2,
    "index_head_dim": 8,
    "index_topk": 16,
    "hc_mult": 2,
}


def test_compressed_attention_by_ratios_or_types():
    listed = read(**V4, compress_ratios=[0, 4, 128, 4, 4])
    assert [layer.attention.ratio for layer in listed.layers] == [0, 4, 128, 4]
    kinds = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"]
    typed = read(**V4, layer_types=kinds, compress_rates={"heavily_compressed_attention": 64})
    assert [layer.attention.ratio for layer in typed.layers] == [0, 4, 64, 0]
    assert isinstance(typed.layers[0].attention, Compressed)
    assert typed.layers[1].attention.indexer is not None
    assert listed.layers[0].hyper_elements == 2 * 2 * 64 * 4 * 2
    with pytest.raises(ConfigError, match="neither layer_types nor compress_ratios"):
        read(**V4)
    with pytest.raises(ConfigError, match="more than one KV head"):
        read(**V4 | {"num_key_value_heads": 2}, compress_ratios=[0] * 4)


def test_a_draft_layer_is_like_the_last():
    assert read(**MLA).draft is None
    assert isinstance(read(**MLA, **MOE, num_nextn_predict_layers=1).draft.ffn, Experts)
    assert isinstance(read(**MLA, num_nextn_predict_layers=1).draft.ffn, Dense)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": ...}, "no hidden_size"),
        ({"vocab_size": 0}, "at least 1"),
        ({"vocab_size": float("inf")}, "is no count"),
        ({"vocab_size": True}, "is no count"),
        ({"num_hidden_layers": 20_000}, "20,000 layers are no model"),
        ({"num_hidden_layers": "many"}, "is no count"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"tie_word_embeddings": "yes"}, "neither true nor false"),
        ({"mamba_d_state": 16}, "mamba_d_state"),
        ({"hybrid_override_pattern": "M-M*"}, "not modelled"),
        ({"layer_types": ["conv"] * 4}, "not modelled here: conv"),
        ({"layer_types": ["full_attention"]}, "1 items for 4 layers"),
        ({"layer_types": "full"}, "is no list"),
        ({"mlp_only_layers": ["x"], **MOE}, "no list of integers"),
        ({"quantization_config": 3}, "is no object"),
        ({"model_type": "novel", "moe_gate_depth": 3}, "moe_gate_depth may change"),
        ({"model_type": "novel", "hidden_act": "relu2"}, "does not tell whether there is a gate"),
        ({"torch_dtype": "int3"}, "unknown data type"),
    ],
)
def test_what_is_not_understood_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        read(**changes)


def test_an_unknown_family_with_known_fields_is_read_and_said_so():
    assert any("'novel' is not on the list" in note for note in read(model_type="novel", hidden_act="silu").notes)
    assert any("'unknown'" in note for note in read(model_type=...).notes)


def test_families_without_a_gate():
    assert read(model_type="starcoder2", hidden_act="gelu").layers[0].ffn == Dense(64, 96, matrices=2)


def test_ranks_that_cannot_share_the_model():
    with pytest.raises(UsageError, match="tp 3 does not divide 8 query heads"):
        read().refuse(3, 1)
    with pytest.raises(UsageError, match="ep 32 is more than 16 experts"):
        read(**MOE).refuse(1, 32)
    read(**MOE).refuse(2, 16)

"""Exact bytes from tensor names and sizes."""

import pytest

from traceaudit.model.llm.checkpoint import StoredTensor, component_of, stored_formats
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.families import architecture


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("lm_head.weight", "lm_head"),
        ("head.weight", "lm_head"),
        ("model.embed_tokens.weight", "embedding"),
        ("embed.weight", "embedding"),
        ("model.norm.weight", "norms"),
        ("model.layers.0.input_layernorm.weight", "norms"),
        ("model.layers.0.self_attn.q_norm.weight", "norms"),
        ("model.layers.0.self_attn.q_proj.weight", "attention"),
        ("model.layers.0.self_attn.kv_b_proj.weight_scale_inv", "attention"),
        ("model.layers.0.self_attn.kv_a_proj_with_mqa.weight", "attention_replicated"),
        ("model.layers.0.self_attn.q_a_proj.weight", "attention_replicated"),
        ("layers.2.attn.wkv.weight", "attention_replicated"),
        ("model.layers.0.self_attn.indexer.wq_b.weight", "indexer"),
        ("layers.2.attn.indexer.compressor.wkv.weight", "compressor"),
        ("layers.2.attn.compressor.wgate.weight", "compressor"),
        ("layers.2.hc_attn_fn", "hyper_connections"),
        ("model.layers.0.linear_attn.in_proj_qkvz.weight", "linear_attention"),
        ("model.layers.0.mlp.gate.weight", "router"),
        ("model.layers.0.mlp.router.weight", "router"),
        ("model.layers.0.mlp.gate.e_score_correction_bias", "router"),
        ("model.layers.0.mlp.gate_proj.weight", "dense_ffn"),
        ("model.layers.0.mlp.experts.17.gate_proj.weight", "routed_experts"),
        ("model.layers.0.mlp.experts.gate_up_proj_blocks", "routed_experts"),
        ("model.layers.0.block_sparse_moe.experts.1.w2.weight", "routed_experts"),
        ("model.layers.0.mlp.shared_experts.up_proj.weight", "shared_experts"),
        ("model.layers.2.mlp.down_proj.weight", "dense_ffn"),
        ("model.layers.4.mlp.down_proj.weight", "draft"),
        ("mtp.layers.0.mlp.down_proj.weight", "draft"),
        ("visual.blocks.0.attn.qkv.weight", None),
        ("layers.0.ffn.gate.tid2eid", None),
        ("something.else", None),
    ],
)
def test_names_tell_parts(name, component):
    assert component_of(name, 4) == component


def model(**changes):
    return architecture(
        {
            "model_type": "llama",
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 16,
            "vocab_size": 10,
            "torch_dtype": "bfloat16",
        }
        | changes,
        name="m",
    )


def tensor(name, size):
    return StoredTensor(name, "BF16", (), size)


def test_bytes_over_weights():
    """Attention has 4 x 8 x 8 = 256 weights: 300 bytes with a scale are 1.171875 a weight; the FFN 3 x 8 x 16 = 384."""
    got = stored_formats(
        model(),
        [
            tensor("model.layers.0.self_attn.q_proj.weight", 296),
            tensor("model.layers.0.self_attn.q_proj.weight_scale", 4),
            tensor("model.layers.0.mlp.up_proj.weight", 384),
            tensor("lm_head.weight", 160),
            tensor("model.embed_tokens.weight", 160),
            tensor("visual.patch.weight", 999),
            tensor("mystery", 7),
        ],
    )
    assert got.of(Component.ATTENTION).bytes_per_weight == 300 / 256
    assert got.of(Component.DENSE_FFN).bytes_per_weight == 1
    assert got.of(Component.LM_HEAD).bytes_per_weight == 2
    assert got.of(Component.NORMS).name == "bf16"
    notes = " ".join(got.notes)
    assert "no tensors were recognised for norms" in notes
    assert "7 bytes of tensors with unknown names" in notes


def test_a_tied_head_is_the_embedding():
    got = stored_formats(model(tie_word_embeddings=True), [tensor("model.embed_tokens.weight", 80)])
    assert got.of(Component.LM_HEAD).bytes_per_weight == 1


def test_a_latent_models_parts_all_found():
    """Every part has tensors, so nothing is missing.

    The indexer has 4 x 2 x 4 + 8 x 4 + 8 x 2 = 80 weights; queries (32 B) and the rest (48 B) are both counted there.
    """
    latent = model(
        model_type="deepseek_v32",
        q_lora_rank=4,
        kv_lora_rank=4,
        qk_rope_head_dim=2,
        qk_nope_head_dim=2,
        v_head_dim=4,
        index_topk=2,
        index_n_heads=2,
        index_head_dim=4,
    )
    names = {
        "model.embed_tokens.weight": 160,
        "lm_head.weight": 160,
        "model.norm.weight": 16,
        "model.layers.0.self_attn.q_b_proj.weight": 64,
        "model.layers.0.self_attn.q_a_proj.weight": 80,
        "model.layers.0.self_attn.indexer.wq_b.weight": 32,
        "model.layers.0.self_attn.indexer.wk.weight": 48,
        "model.layers.0.mlp.up_proj.weight": 384,
    }
    got = stored_formats(latent, [tensor(name, size) for name, size in names.items()])
    assert got.of(Component.INDEXER).bytes_per_weight == 1
    assert not any("no tensors" in note for note in got.notes)


def test_compressed_attention_has_a_part_for_its_compressor():
    compressed = model(
        model_type="deepseek_v4",
        num_key_value_heads=1,
        head_dim=8,
        q_lora_rank=4,
        o_lora_rank=4,
        o_groups=1,
        sliding_window=4,
        compress_ratios=[128],
    )
    got = stored_formats(compressed, [tensor("layers.0.attn.compressor.wkv.weight", 256)])
    assert got.of(Component.COMPRESSOR).bytes_per_weight == 2


def test_experts_count_all_of_them():
    """4 experts of 3 x 8 x 4 = 96 weights take 384 bytes: one a weight."""
    moe = model(model_type="qwen3_moe", num_experts=4, num_experts_per_tok=1, moe_intermediate_size=4)
    got = stored_formats(moe, [tensor(f"model.layers.0.mlp.experts.{n}.up_proj.weight", 96) for n in range(4)])
    assert got.of(Component.ROUTED_EXPERTS).bytes_per_weight == 1

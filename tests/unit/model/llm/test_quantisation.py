"""Bytes for each weight by format, and which parts a quantisation config leaves as they were."""

import pytest

from traceaudit.errors import ConfigError, UsageError
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.modulenames import covers, share_of_layers
from traceaudit.model.llm.quantisation import FORMATS, Formats, KvDtype, named_format, overridden

ATTENTION, EXPERTS, HEAD = Component.ATTENTION, Component.ROUTED_EXPERTS, Component.LM_HEAD


def formats(quant, **changes):
    base = {
        "model_type": "qwen3_moe",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_experts": 16,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "vocab_size": 100,
        "torch_dtype": "bfloat16",
        "quantization_config": quant,
    }
    return architecture(base | changes, name="m").formats


@pytest.mark.parametrize(
    ("quant", "size", "compute"),
    [
        (None, 2, "bf16"),
        ({"quant_method": "fp8"}, 1, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 1 + 4 / 16384, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}, 1 + 1 / 16384, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [1, 128]}, 1 + 4 / 128, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [7]}, 1 + 4 / 16384, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, 1, "fp8"),
        ({"quant_method": "mxfp8"}, 1.03125, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 0.5625, "fp4"),
        ({"quant_algo": "FP8"}, 1, "fp8"),
        ({"quantization": {"quant_algo": "FP8"}, "quant_method": "modelopt"}, 1, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 0.5 + 2.5 / 128, "bf16"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, 0.5 + 2.5 / 128, "bf16"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 1, "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 0.5625, "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 0.516, "bf16"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 1, "bf16"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, 1, "fp8"),
        ({"quant_method": "w8a8_int8"}, 1, "int8"),
    ],
)
def test_bytes_of_a_linear_weight(quant, size, compute):
    got = formats(quant)
    assert got.of(ATTENTION).bytes_per_weight == pytest.approx(size, rel=1e-12)
    assert got.of(EXPERTS).compute == compute
    assert got.of(HEAD).name == got.of(Component.ROUTER).name == "bf16"


def group(targets=("Linear",), acts=None, **weights):
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": weights, "targets": list(targets), "input_activations": acts}},
    }


@pytest.mark.parametrize(
    ("quant", "size", "compute"),
    [
        (group(num_bits=8, type="float", acts={}), 1, "fp8"),
        (group(num_bits=8, type="float"), 1, "bf16"),
        (group(num_bits=8, type="float", group_size=32, acts={}), 1.03125, "fp8"),
        (group(num_bits=8, type="float", block_structure=[128, 128], acts={}), 1 + 4 / 16384, "fp8"),
        (group(num_bits=4, type="float", group_size=16, acts={}), 0.5625, "fp4"),
        (group(num_bits=4, type="float", group_size=32), 0.53125, "bf16"),
        (group(num_bits=4, type="int", group_size=32), 0.5 + 2 / 32, "bf16"),
        (group(num_bits=8, type="int", acts={}), 1, "int8"),
        (group(num_bits=8, type="int"), 1, "bf16"),
    ],
)
def test_compressed_tensors(quant, size, compute):
    got = formats(quant).of(ATTENTION)
    assert (got.bytes_per_weight, got.compute) == (pytest.approx(size, rel=1e-12), compute)


@pytest.mark.parametrize(
    "quant",
    [
        {"quant_method": "hqq"},
        {},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
        {"quant_method": "awq"},
        {"quant_method": "quark"},
        group(num_bits=2, type="code"),
        {"quant_method": "compressed-tensors", "config_groups": {"a": {}}},
    ],
)
def test_unknown_methods_are_refused(quant):
    if not quant:
        assert formats(quant).by_component == {}
        return
    with pytest.raises(ConfigError):
        formats(quant)


@pytest.mark.parametrize(
    "left",
    [
        {"modules_to_not_convert": ["self_attn"]},
        {"ignore": ["re:.*self_attn.*"]},
        {"exclude_modules": ["model.layers.*.self_attn*"]},
        {"ignored_layers": [f"model.layers.{n}.self_attn.{m}_proj" for n in range(4) for m in "qkvo"]},
    ],
)
def test_modules_left_out_keep_their_type(left):
    got = formats({"quant_method": "fp8", **left})
    assert (got.of(ATTENTION).name, got.of(EXPERTS).name) == ("bf16", "fp8")


def test_a_part_left_out_in_some_layers_is_blended():
    """One layer of four in bf16: (2 + 3 x 1) / 4 = 1.25 bytes a weight."""
    got = formats({"quant_method": "fp8", "ignore": ["model.layers.0.self_attn"]}).of(ATTENTION)
    assert (got.bytes_per_weight, got.name) == (1.25, "fp8 (25% bf16)")


def test_targets_of_groups_choose_parts():
    quant = group(num_bits=8, type="float", acts={})
    quant["config_groups"]["group_1"] = {
        "weights": {"num_bits": 4, "type": "float", "group_size": 16},
        "targets": ["re:.*mlp.experts.*"],
        "input_activations": {},
    }
    got = formats(quant)
    assert (got.of(ATTENTION).name, got.of(EXPERTS).name) == ("fp8", "nvfp4")
    alone = formats(group(targets=["re:.*mlp.experts.*"], num_bits=4, type="float", group_size=16, acts={}))
    assert (alone.of(ATTENTION).name, alone.of(EXPERTS).name) == ("bf16", "nvfp4")


def test_mxfp4_is_for_experts():
    got = formats({"quant_method": "mxfp4"})
    assert (got.of(ATTENTION).name, got.of(EXPERTS).bytes_per_weight) == ("bf16", 0.53125)


def test_experts_may_have_a_type_of_their_own():
    got = formats({"quant_method": "fp8"}, expert_dtype="fp4")
    assert (got.of(ATTENTION).name, got.of(EXPERTS).name) == ("fp8", "mxfp4")


def test_head_quantised_when_said():
    assert formats({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True}).of(HEAD).name == "int4_g128"


@pytest.mark.parametrize(
    ("quant", "expected"),
    [
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, KvDtype.FP8),
        ({"quant_algo": "FP8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, KvDtype.FP8),
        ({"quant_algo": "FP8", "kv_cache_scheme": {"num_bits": 4, "type": "float"}}, None),
        ({"quant_algo": "FP8"}, None),
    ],
)
def test_cache_type_of_the_checkpoint(quant, expected):
    assert formats(quant).kv_dtype is expected


def test_the_user_overrides_all_or_parts():
    got = overridden(Formats(FORMATS["bf16"]), "fp8")
    assert (got.of(ATTENTION).name, got.of(HEAD).name) == ("fp8", "bf16")
    parts = overridden(got, "experts=mxfp4, head=fp8")
    assert (parts.of(EXPERTS).name, parts.of(HEAD).name, parts.of(ATTENTION).name) == ("mxfp4", "fp8", "fp8")
    with pytest.raises(UsageError, match="unknown part"):
        overridden(got, "tail=fp8")
    with pytest.raises(UsageError, match="unknown weight format"):
        named_format("fp3")


def test_cache_types():
    assert [KvDtype(name).size_bytes for name in ("bf16", "fp16", "fp8", "int8", "nvfp4")] == [2, 2, 1, 1, 0.5625]
    assert (KvDtype.FP8.compute, KvDtype.BF16.compute) == ("fp8", "bf16")


def test_name_patterns():
    assert covers(["re:.*self_attn"], ATTENTION, 3)
    assert not covers(["re:("], ATTENTION, 3)
    assert not covers(["self_attn.q_proj"], ATTENTION, 3)
    assert not covers(["mlp.gate"], Component.DENSE_FFN, 0)
    assert share_of_layers(["self_attn"], ATTENTION, []) == 0

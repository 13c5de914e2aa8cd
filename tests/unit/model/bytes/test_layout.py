"""Layer patterns in kernel sequences, for several ways of fusing."""

import pytest

from traceaudit.model.bytes.kernelclass import KernelClass
from traceaudit.model.bytes.layout import Style, lay_out
from traceaudit.model.bytes.rolework import RoleWork
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.presets import preset
from traceaudit.model.llm.workload import Workload

CLASSES = {
    "A": KernelClass.ATTENTION,
    "G": KernelClass.GEMM,
    "E": KernelClass.EXPERTS,
    "n": KernelClass.NORM,
    "o": KernelClass.OTHER,
}


def model(layers=2, **changes):
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 1000,
    }
    return architecture(config | changes, name="small")


def roles(text, made, *, whole=True):
    layout = lay_out([CLASSES[char] for char in text], made, whole=whole)
    return [layout.roles[at].role for at in sorted(layout.roles)], layout


LAYER = ["qkv", "attention", "o", "gate_up", "down"]


def test_fused_layers():
    found, layout = roles("onGoAoGnGoGnGAGGGnG", model())
    assert found == LAYER * 2 + ["lm_head"]
    assert (layout.style, layout.unplaced) == (Style(), 0)


def test_products_apart():
    found, layout = roles("GGGAGGGG" * 2 + "G", model())
    assert found == ["q", "k", "v", "attention", "o", "gate", "up", "down"] * 2 + ["lm_head"]
    assert layout.style == Style(split_qkv=True, split_gate_up=True)


def test_experts_share_a_role_between_their_kernels():
    made = model(model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
    found, _ = roles("GAGGEoE" * 2 + "G", made)
    assert found == ["qkv", "attention", "o", "router", "experts", "experts"] * 2 + ["lm_head"]


def test_layers_of_two_kinds():
    made = model(
        model_type="qwen3_moe", num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32, mlp_only_layers=[0]
    )
    found, _ = roles("GAGGG" + "GAGGE" + "G", made)
    assert found == [*LAYER, "qkv", "attention", "o", "router", "experts", "lm_head"]


def test_a_capture_that_begins_within_a_step_is_matched_from_its_end():
    found, layout = roles("nGnGAGGGG", model(3), whole=False)
    assert found == ["down", "qkv", "attention", "o", "gate_up", "down", "lm_head"]
    assert {placed.layer for placed in layout.roles.values()} == {1, 2, None}


@pytest.mark.parametrize("text", ["", "GGG", "GAGGG", "GAGGGGAGGGGAGGGG"])
def test_what_is_no_step_of_the_model_gets_no_roles(text):
    assert roles(text, model())[0] == []


def test_a_stretch_that_does_not_fit_stays_without_roles():
    found, layout = roles("GAGGG" + "GAGGGG" + "GAGGGG", model(3))  # one product too many after the second attention
    assert found == [*LAYER, "qkv", "attention", "attention", "o", "gate_up", "down", "lm_head"]
    assert layout.unplaced == 5


def test_roles_add_up_to_the_floor_of_the_model():
    """Weights of all roles of a step are those that the roofline counts, norms and embedding aside."""
    made = preset("llama-3-8b")
    whole = architecture(made.config, name=made.name)
    works = RoleWork(whole, Workload((1024,) * 16))
    products = (
        sum(works.of(role, index).read_bytes for index in range(32) for role in ("qkv", "o", "gate_up", "down"))
        + works.of("lm_head", None).read_bytes
    )
    activations = 32 * 16 * 2 * (4096 + 4096 + 4096 + 14336) + 16 * 4096 * 2
    assert products - activations == pytest.approx(15.010e9, rel=1e-3)  # reference figure for Llama 3 8B in bf16
    cache = sum(works.of("attention", index).read_bytes for index in range(32)) - 32 * 16 * 4096 * 2
    assert cache == 2_147_483_648


def test_latent_attention_has_roles_of_its_own():
    made = preset("deepseek-v3")
    works = RoleWork(architecture(made.config, name=made.name), Workload((2048,) * 16))
    assert works.of("attention", 5).read_bytes == pytest.approx(16 * 2048 * 576 * 2, rel=0.07)
    assert works.of("q_b", 5).flop == 2 * 16 * 1536 * 128 * 192
    assert works.of("experts", 0) is None  # the first layers are dense
    assert works.of("nonsense", 0) is None

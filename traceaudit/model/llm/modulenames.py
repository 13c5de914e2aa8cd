"""Which parts of a model the name patterns of a quantisation config mean, such as the modules left unquantised."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from traceaudit.model.llm.components import Component

__all__ = ["covers", "share_of_layers"]

STYLES: dict[Component, tuple[tuple[str, ...], ...]] = {
    Component.ATTENTION: (
        ("self_attn.q_proj", "self_attn.o_proj"),
        ("self_attn.q_b_proj", "self_attn.o_proj"),
        ("self_attn.qkv_proj", "self_attn.o_proj"),
        ("attn.wq_b", "attn.wo_b"),
    ),
    Component.ATTENTION_REPLICATED: (
        ("self_attn.kv_a_proj_with_mqa",),
        ("self_attn.fused_qkv_a_proj_with_mqa",),
        ("attn.wq_a", "attn.wkv"),
    ),
    Component.LINEAR_ATTENTION: (
        ("linear_attn.in_proj_qkvz", "linear_attn.out_proj"),
        ("linear_attn.in_proj_qkv", "linear_attn.out_proj"),
    ),
    Component.INDEXER: (("self_attn.indexer.wq_b",), ("attn.indexer.wq_b",)),
    Component.DENSE_FFN: (("mlp.gate_proj", "mlp.down_proj"), ("mlp.gate_up_proj", "mlp.down_proj")),
    Component.ROUTED_EXPERTS: (
        ("mlp.experts.0.gate_proj", "mlp.experts.0.down_proj"),
        ("block_sparse_moe.experts.0.w1", "block_sparse_moe.experts.0.w2"),
        ("ffn.experts.0.w1", "ffn.experts.0.w2"),
    ),
    Component.SHARED_EXPERTS: (
        ("mlp.shared_experts.gate_proj", "mlp.shared_experts.down_proj"),
        ("mlp.shared_expert.gate_proj", "mlp.shared_expert.down_proj"),
        ("ffn.shared_experts.w1", "ffn.shared_experts.w2"),
    ),
}
"""Modules of each part below a layer, in the spellings of several checkpoints; a part is meant if all of one are."""

PREFIXES = ("model.layers.", "model.language_model.layers.", "language_model.model.layers.", "layers.")


def covers(patterns: Iterable[str], component: Component, layer: int) -> bool:
    """Return whether the patterns mean a part of the layer with that index."""
    listed = tuple(patterns)
    return any(
        all(_any_matches(listed, f"{prefix}{layer}.{module}") for module in style)
        for prefix in PREFIXES
        for style in STYLES.get(component, ())
    )


def share_of_layers(patterns: Iterable[str], component: Component, layers: Iterable[int]) -> float:
    """Return for what share of the layers the patterns mean a part, 0 where there are no layers."""
    listed, indices = tuple(patterns), tuple(layers)
    hits = sum(covers(listed, component, index) for index in indices)
    return hits / len(indices) if indices else 0.0


def _any_matches(patterns: tuple[str, ...], name: str) -> bool:
    return any(_matches(pattern, name) for pattern in patterns)


def _matches(pattern: str, name: str) -> bool:
    """Match a regular expression after ``re:``, a glob, or whole dotted parts of the name."""
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], name) is not None
        except re.error:
            return False
    if "*" in pattern:
        return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")
    return f".{pattern.strip('.')}." in f".{name}."

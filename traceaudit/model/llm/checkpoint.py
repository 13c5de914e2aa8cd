"""Exact bytes of each part of a model, from the tensors of its checkpoint."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.ffn import Experts
from traceaudit.model.llm.quantisation import Format, Formats

__all__ = ["StoredTensor", "component_of", "stored_formats"]

UNREAD = re.compile(r"(^|\.)(visual|vision\w*|multi_modal\w*|mm_projector|audio\w*|connector)\.|tid2eid$|inv_freq$")
DOWN = re.compile(r"\.(q_a_proj|kv_a_proj\w*|fused_qkv_a_proj\w*|kv_proj|wq_a|wkv_a|wkv)\.")
RULES: tuple[tuple[re.Pattern[str], Component], ...] = tuple(
    (re.compile(pattern), component)
    for pattern, component in (
        (r"(^|\.)mtp\.|\.(eh_proj|enorm|hnorm|shared_head)\b", Component.DRAFT),
        (r"(^|\.)(lm_head|output|head)\.(weight|bias|scales?|qweight|qzeros|g_idx|weight_\w+)$", Component.LM_HEAD),
        (r"(^|\.)(embed\w*|wte|tok_embeddings)\.", Component.EMBEDDING),
        (r"(^|\.)(hc_\w+|\w+_hc)(\.|$)", Component.HYPER_CONNECTIONS),
        (r"\.(shared_experts?|shared_mlp)\.", Component.SHARED_EXPERTS),
        (r"\.experts?\.", Component.ROUTED_EXPERTS),
        (
            r"\.(mlp|ffn|block_sparse_moe|feed_forward|moe)\.(gate|router|shared_expert_gate|e_score\w*)(\.|$)",
            Component.ROUTER,
        ),
        (r"norm\w*\.(weight|bias)$", Component.NORMS),
        (r"\.indexer\.(wq_b|q_b_proj)\.", Component.INDEXER),
        (r"\.(indexer|compressor)\.", Component.COMPRESSOR),
        (r"\.(linear_attn|gated_delta_net)\.", Component.LINEAR_ATTENTION),
        (r"\.(self_attn|attn|attention)\.", Component.ATTENTION),
        (r"\.(mlp|ffn|feed_forward)\.", Component.DENSE_FFN),
    )
)
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a checkpoint file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int


def component_of(name: str, layers: int) -> Component | None:
    """Return the part that a tensor belongs to, by its name; None for what a decode step does not read.

    Examples
    --------
    >>> str(component_of("model.layers.3.mlp.experts.7.down_proj.weight_scale_inv", 61))
    'routed_experts'
    """
    if UNREAD.search(name):
        return None
    layer = LAYER.search(name)
    if layer is not None and int(layer[1]) >= layers:
        return Component.DRAFT
    found = next((component for pattern, component in RULES if pattern.search(name)), None)
    if found is Component.ATTENTION and DOWN.search(name):
        return Component.ATTENTION_REPLICATED
    return found


def stored_formats(architecture: Architecture, tensors: Iterable[StoredTensor]) -> Formats:
    """Return the formats with the bytes for each weight that the tensors really take, scales included.

    The bytes of a part are divided by the weights that the configuration gives it; so replication and slicing stay
    those of the model, and the sum over all ranks is that of the files. Parts without tensors keep their format.
    """
    sizes: Counter[Component] = Counter()
    unknown = 0
    for tensor in tensors:
        component = component_of(tensor.name, len(architecture.layers))
        if component is not None:
            sizes[component] += tensor.size_bytes
        elif not UNREAD.search(tensor.name):
            unknown += tensor.size_bytes
    _merge(sizes, architecture)
    if architecture.tied or not sizes[Component.LM_HEAD]:
        sizes[Component.LM_HEAD] = sizes[Component.EMBEDDING]
    elements = _elements(architecture)
    changed = dict(architecture.formats.by_component)
    read = [component for component in elements if sizes[component] and elements[component]]
    for component in read:
        known = architecture.formats.of(component)
        name = f"{sizes[component] / elements[component]:.4g} B a weight, by the files"
        changed[component] = Format(name, sizes[component] / elements[component], known.compute)
    notes = [f"bytes of {', '.join(read)} from the checkpoint's files"]
    missing = [component for component in elements if elements[component] and not sizes[component]]
    if missing:
        notes.append(f"no tensors were recognised for {', '.join(missing)}: taken from the configuration")
    if unknown:
        notes.append(f"{unknown:,} bytes of tensors with unknown names are left out")
    return replace(architecture.formats, by_component=changed, notes=(*architecture.formats.notes, *notes))


def _merge(sizes: Counter[Component], architecture: Architecture) -> None:
    """Put parts that the names tell apart and this model does not where the model counts them."""
    having = set(_elements(architecture))
    for component, home in (
        (Component.COMPRESSOR, Component.INDEXER),
        (Component.ATTENTION_REPLICATED, Component.ATTENTION),
    ):
        if component not in having:
            sizes[home] += sizes.pop(component, 0)


def _elements(architecture: Architecture) -> dict[Component, int]:
    counts: Counter[Component] = Counter()
    for layer, number in architecture.kinds():
        for part in layer.weights(1):
            counts[part.component] += number * part.elements
        if isinstance(layer.ffn, Experts):
            counts[Component.ROUTED_EXPERTS] += number * layer.ffn.count * layer.ffn.expert_elements
    counts[Component.LM_HEAD] = architecture.head_elements
    counts[Component.NORMS] += architecture.hidden
    return dict(counts)

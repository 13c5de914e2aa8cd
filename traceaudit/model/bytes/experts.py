"""Fused mixtures of experts: weights of the experts that a batch is expected to touch, each once.

Experts that no token chose are not read, and one chosen by several tokens is read once. How many different ones that
makes is not in the trace; uniform independent routing gives ``E (1 - (1 - k/E)^T)``, with k and min(E, k T) as bounds.
"""

from collections.abc import Callable

from traceaudit.model.bytes.facts import Choice, Facts
from traceaudit.model.bytes.operands import DTYPE_BYTES, OpCall, Operand, compute_dtype
from traceaudit.model.bytes.work import Family, Source, Work
from traceaudit.model.llm.ffn import Touched, touched

__all__ = ["MODELS", "ROUTER", "choice_of", "fused_experts", "routed"]

ROUTER = "aten::topk"
PAIR, TRIPLE = 2, 3
MOST_CHOSEN = 64
"""Experts of a token at most; wider operands are router logits."""


def fused_experts(call: OpCall, facts: Facts) -> Work | None:  # noqa: ARG001  (every model takes the facts)
    """Model an op that takes tokens, stacked expert weights, and each token's choice."""
    tokens = next((item for item in call.tensors() if len(item.dims) == PAIR), None)
    weights = [item for item in call.tensors() if len(item.dims) == TRIPLE and item.dtype != "bool"]
    if tokens is None or len(weights) < PAIR:
        return None
    experts = weights[0].dims[0]
    count, hidden = tokens.dims
    chosen = _chosen(call, count, experts)
    if chosen is None or not experts:
        return None
    stacked = [item for item in call.tensors() if item is not tokens and item.dims and item.dims[0] == experts]
    used = touched(experts, chosen, count)
    read = round(sum(item.size_bytes for item in stacked) * used.expected / experts)
    activations = count * hidden * tokens.item_bytes
    return Work(
        Family.EXPERTS,
        Source.SHAPE,
        read + activations + PAIR * count * chosen * DTYPE_BYTES["float"],
        activations,
        2 * count * chosen * sum(_elements(item, hidden) for item in weights[:PAIR]) // experts,
        _dtype(weights[0], tokens),
        routed(used, experts, chosen, count),
    )


def routed(used: Touched, experts: int, chosen: int, tokens: int) -> str:
    """Say how many experts were taken to be touched, and why."""
    return (
        f"{used.expected:.1f} of {experts} experts touched, as uniform routing of {tokens} tokens to {chosen} each "
        f"would ({used.minimum:.0f} to {used.maximum:.0f})"
    )


def choice_of(call: OpCall) -> Choice | None:
    """Return the choice of a router's top-k over its scores, None for any other op."""
    scores = call.tensor(0)
    if call.name != ROUTER or scores is None or len(scores.dims) != PAIR:
        return None
    tokens, experts = scores.dims
    chosen = call.integer(1)
    return Choice(tokens, chosen, experts) if chosen is not None and 0 < chosen <= min(experts, MOST_CHOSEN) else None


def _chosen(call: OpCall, tokens: int, experts: int) -> int | None:
    """Return the experts of a token: the width of the narrow operand with a row for each token."""
    widths = [
        item.dims[1]
        for item in call.tensors()
        if len(item.dims) == PAIR and item.dims and item.dims[0] == tokens and item.dims[1] <= MOST_CHOSEN
    ]
    narrow = [width for width in widths if width <= experts]
    return min(narrow) if narrow else None


def _elements(weights: Operand, hidden: int) -> int:
    """Count weights; where they are packed two a byte, no dimension is as wide as the tokens."""
    packed = weights.dtype in {"unsigned char", "signed char", "c10::Float4_e2m1fn_x2"}
    return weights.numel * (2 if packed and hidden not in weights.dims[1:] else 1)


def _dtype(weights: Operand, tokens: Operand) -> str | None:
    return compute_dtype(weights.dtype) if weights.item_bytes == 1 else compute_dtype(tokens.dtype)


MODELS: dict[str, Callable[[OpCall, Facts], Work | None]] = dict.fromkeys(
    (
        "vllm::outplace_fused_experts",
        "vllm::inplace_fused_experts",
        "vllm::fused_experts",
        "vllm::flashinfer_cutlass_fused_moe",
        "vllm::rocm_aiter_fused_moe",
        "vllm::rocm_aiter_asm_moe_tkw1",
        "vllm::fused_marlin_moe",
        "sglang::outplace_fused_experts",
        "sglang::inplace_fused_experts",
        "sglang::fused_experts",
        "sgl_kernel::fused_experts_cpu",
        "aiter::fused_moe_",
        "aiter::fmoe",
        "flashinfer::cutlass_fused_moe",
        "trtllm::fused_moe",
    ),
    fused_experts,
)

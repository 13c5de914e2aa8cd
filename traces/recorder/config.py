"""Size of the recorded decoders, and the bytes that one step of them must read."""

from dataclasses import dataclass

__all__ = ["DENSE", "MODELS", "MOE", "DecoderConfig"]

BF16_BYTES = 2


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Shape of the model and of its batch.

    ``context`` is the number of KV slots of each request. The cache is a ring: a step overwrites
    the oldest slot and reads all of them, so every step does the same work.

    ``attention`` is ``sdpa`` (torch picks the kernel) or ``triton``, a kernel that runs
    ``programs_per_head`` programs for each query head: one leaves most of the device idle. Each
    program ends with ``extra_rounds`` rounds of arithmetic that change nothing but its time.

    ``activation`` is ``torch`` (two kernels a layer), ``fused`` (one Triton kernel) or ``renamed`` (the
    same kernel under another name). ``extra_kernels`` small kernels are added to each layer.

    With ``experts`` each layer routes a token to ``experts_per_token`` of so many gated MLPs, which
    are ``intermediate`` wide. ``qk_norm`` normalises queries and keys. ``sampled`` draws the next
    token instead of taking the likeliest: requests of a random model would soon agree otherwise.
    """

    layers: int = 12
    hidden: int = 2048
    heads: int = 16
    kv_heads: int = 4
    head_dim: int = 128
    intermediate: int = 5632
    vocab: int = 32000
    batch: int = 16
    context: int = 2048
    seed: int = 0
    attention: str = "sdpa"
    programs_per_head: int = 16
    extra_rounds: int = 0
    activation: str = "torch"
    extra_kernels: int = 0
    experts: int = 0
    experts_per_token: int = 8
    qk_norm: bool = False
    sampled: bool = False

    @property
    def expert_parameters(self) -> int:
        """Weights of one gated MLP: gate, up and down."""
        return 3 * self.hidden * self.intermediate

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer that every token passes: QKV, output, norms, and MLP or router."""
        attention = (2 * self.heads + 2 * self.kv_heads) * self.head_dim * self.hidden
        norms = 2 * self.hidden + 2 * self.head_dim * self.qk_norm
        return attention + norms + (self.experts * self.hidden or self.expert_parameters)

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that a step reads: layers, final norm, LM head, ``batch`` embeddings.

        Routed experts are left out, since how many a step reads depends on its tokens.
        """
        head = self.vocab * self.hidden + self.hidden
        embedded = self.batch * self.hidden
        return BF16_BYTES * (self.layers * self.layer_parameters + head + embedded)

    @property
    def kv_bytes(self) -> int:
        """Bytes of keys and values that a step reads."""
        per_token = 2 * self.kv_heads * self.head_dim * BF16_BYTES
        return self.layers * self.batch * self.context * per_token

    @property
    def flop(self) -> int:
        """Matrix and attention FLOP of a step, a multiply-add counted as two."""
        routed = self.experts_per_token * self.expert_parameters if self.experts else 0
        norms = 2 * self.hidden + 2 * self.head_dim * self.qk_norm
        matrix = self.layers * (self.layer_parameters - norms + routed) + self.vocab * self.hidden
        attention = 2 * self.layers * self.context * self.heads * self.head_dim
        return 2 * self.batch * (matrix + attention)

    @property
    def expert_bytes(self) -> int:
        """Bytes of one routed expert of one layer; 0 without experts."""
        return BF16_BYTES * self.expert_parameters if self.experts else 0

    def published(self) -> dict[str, object]:
        """Return what the ``config.json`` of such a mixture-of-experts model says."""
        return {
            "architectures": ["Qwen3MoeForCausalLM"],
            "model_type": "qwen3_moe",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.intermediate * self.experts_per_token,
            "moe_intermediate_size": self.intermediate,
            "num_experts": self.experts,
            "num_experts_per_tok": self.experts_per_token,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "vocab_size": self.vocab,
            "tie_word_embeddings": False,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "torch_dtype": "bfloat16",
        }


DENSE = DecoderConfig()
MOE = DecoderConfig(
    layers=8,
    heads=64,
    intermediate=768,
    batch=8,
    context=512,
    attention="triton",
    programs_per_head=8,
    activation="fused",
    experts=64,
    qk_norm=True,
    sampled=True,
)
MODELS = {"dense": DENSE, "moe": MOE}

"""A small transformer decoder in plain torch: GQA with a KV cache, rotary, gated MLP, LM head."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from recorder.config import DecoderConfig
from recorder.experts import ExpertMlp

__all__ = ["Decoder"]

NORM_EPSILON = 1e-6
ROPE_BASE = 10_000.0
ROPE_POSITIONS = 32_768


class Attention(nn.Module):
    """Grouped-query attention over a ring of KV slots."""

    keys: Tensor
    values: Tensor

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        width = (config.heads + 2 * config.kv_heads) * config.head_dim
        self.qkv = nn.Linear(config.hidden, width, bias=False)
        self.output = nn.Linear(config.heads * config.head_dim, config.hidden, bias=False)
        ring = (config.batch, config.kv_heads, config.context, config.head_dim)
        self.query_norm = nn.RMSNorm(config.head_dim, eps=NORM_EPSILON) if config.qk_norm else nn.Identity()
        self.key_norm = nn.RMSNorm(config.head_dim, eps=NORM_EPSILON) if config.qk_norm else nn.Identity()
        self.register_buffer("keys", torch.randn(ring))
        self.register_buffer("values", torch.randn(ring))

    def forward(self, hidden: Tensor, cos: Tensor, sin: Tensor, slot: Tensor) -> Tensor:
        heads, kv_heads = self.config.heads, self.config.kv_heads
        states = self.qkv(hidden).view(hidden.shape[0], -1, 1, self.config.head_dim)
        turned = rotate(self._normed(states[:, : heads + kv_heads]), cos, sin)
        query, key = turned.split((heads, kv_heads), dim=1)
        self.keys.index_copy_(2, slot, key)
        self.values.index_copy_(2, slot, states[:, heads + kv_heads :])
        return self.output(self._attend(query).reshape(hidden.shape[0], -1))

    def _normed(self, states: Tensor) -> Tensor:
        if not self.config.qk_norm:
            return states
        query, key = states.split((self.config.heads, self.config.kv_heads), dim=1)
        return torch.cat((self.query_norm(query), self.key_norm(key)), dim=1)

    def _attend(self, query: Tensor) -> Tensor:
        if self.config.attention == "sdpa":
            return functional.scaled_dot_product_attention(query, self.keys, self.values, enable_gqa=True)
        from recorder.triton_kernels import decode_attention

        return decode_attention(
            query,
            self.keys,
            self.values,
            programs_per_head=self.config.programs_per_head,
            extra_rounds=self.config.extra_rounds,
        )


class GatedMlp(nn.Module):
    """SwiGLU: ``down(silu(gate) * up)``."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.gate_up = nn.Linear(config.hidden, 2 * config.intermediate, bias=False)
        self.down = nn.Linear(config.intermediate, config.hidden, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        gate_up = self.gate_up(hidden)
        if self.activation == "torch":
            gate, up = gate_up.chunk(2, dim=-1)
            return self.down(functional.silu(gate) * up)
        from recorder.triton_kernels import silu_mul

        return self.down(silu_mul(gate_up, renamed=self.activation == "renamed"))


class Layer(nn.Module):
    """One pre-norm decoder layer."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.extra_kernels = config.extra_kernels
        self.attention_norm = nn.RMSNorm(config.hidden, eps=NORM_EPSILON)
        self.attention = Attention(config)
        self.mlp_norm = nn.RMSNorm(config.hidden, eps=NORM_EPSILON)
        self.mlp = ExpertMlp(config) if config.experts else GatedMlp(config)

    def forward(self, hidden: Tensor, cos: Tensor, sin: Tensor, slot: Tensor) -> Tensor:
        hidden = hidden + self.attention(self.attention_norm(hidden), cos, sin, slot)
        for _ in range(self.extra_kernels):
            hidden = hidden.neg()
        return hidden + self.mlp(self.mlp_norm(hidden))


class Decoder(nn.Module):
    """Decoding of ``batch`` requests; `step` reads and writes only fixed buffers."""

    cos: Tensor
    sin: Tensor
    tokens: Tensor
    position: Tensor

    def __init__(self, config: DecoderConfig, device: str = "cuda") -> None:
        super().__init__()
        self.config = config
        torch.manual_seed(config.seed)
        previous = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            with torch.device(device):
                self._build(config)
        finally:
            torch.set_default_dtype(previous)
        self.requires_grad_(requires_grad=False)

    def _build(self, config: DecoderConfig) -> None:
        self.embedding = nn.Embedding(config.vocab, config.hidden)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.hidden, eps=NORM_EPSILON)
        self.head = nn.Linear(config.hidden, config.vocab, bias=False)
        frequency = ROPE_BASE ** -torch.arange(0, 1, 2 / config.head_dim, dtype=torch.float32)
        angle = torch.outer(torch.arange(ROPE_POSITIONS, dtype=torch.float32), frequency)
        angle = torch.cat((angle, angle), dim=-1)
        self.register_buffer("cos", angle.cos().bfloat16())
        self.register_buffer("sin", angle.sin().bfloat16())
        self.register_buffer("tokens", torch.randint(config.vocab, (config.batch,)))
        self.register_buffer("position", torch.tensor([config.context]))

    @torch.no_grad()
    def step(self, *, sync_every: int = 0) -> None:
        """Decode one token for every request.

        With ``sync_every`` the host reads a flag from the device after every so many layers, as
        debug checks and data-dependent branches do.
        """
        slot = self.position.remainder(self.config.context)
        cos = self.cos.index_select(0, self.position)
        sin = self.sin.index_select(0, self.position)
        hidden = self.embedding(self.tokens)
        for number, layer in enumerate(self.layers, start=1):
            hidden = layer(hidden, cos, sin, slot)
            if sync_every and number % sync_every == 0 and not hidden.isfinite().all().item():
                raise FloatingPointError(f"layer {number} gave a value that is not finite")
        logits = self.head(self.norm(hidden))
        self.tokens.copy_(draw(logits) if self.config.sampled else logits.argmax(dim=-1))
        self.position.add_(1).remainder_(ROPE_POSITIONS)

    def experts_read(self) -> list[int]:
        """Return for each layer how many experts the last step read; empty without experts."""
        return [layer.mlp.chosen.unique().numel() for layer in self.layers if isinstance(layer.mlp, ExpertMlp)]


def draw(logits: Tensor) -> Tensor:
    """Sample one token from each row of ``logits`` without waiting for the device."""
    probabilities = logits.float().softmax(dim=-1)
    return (probabilities / torch.empty_like(probabilities).exponential_()).argmax(dim=-1)


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary position embedding to the last dimension."""
    left, right = heads.chunk(2, dim=-1)
    return heads * cos + torch.cat((-right, left), dim=-1) * sin

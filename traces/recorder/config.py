"""Size of the recorded decoder, and the bytes that one step of it must read."""

from dataclasses import dataclass

__all__ = ["DecoderConfig"]

BF16_BYTES = 2


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Shape of the model and of its batch.

    ``context`` is the number of KV slots of each request. The cache is a ring: a step overwrites
    the oldest slot and reads all of them, so every step does the same work.

    ``attention`` is ``sdpa`` (torch picks the kernel) or ``triton``, a kernel that runs
    ``programs_per_head`` programs for each query head and walks ``extra_slots`` slots twice: one
    program a head leaves most of the device idle, and extra slots slow this one kernel by a known
    share.

    ``activation`` is ``torch`` (two kernels a layer), ``fused`` (one Triton kernel) or ``renamed`` (the
    same kernel under another name). ``extra_kernels`` small kernels are added to each layer.
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
    extra_slots: int = 0
    activation: str = "torch"
    extra_kernels: int = 0

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer: QKV, output, gate and up, down, two norms."""
        attention = (2 * self.heads + 2 * self.kv_heads) * self.head_dim * self.hidden
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that a step reads: layers, final norm, LM head, ``batch`` embeddings."""
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
        matrix = self.layers * (self.layer_parameters - 2 * self.hidden) + self.vocab * self.hidden
        attention = 2 * self.layers * self.context * self.heads * self.head_dim
        return 2 * self.batch * (matrix + attention)

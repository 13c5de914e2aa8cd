"""Linear attention (gated delta net of Qwen3-Next and Qwen3.5): a state of fixed size in place of a growing cache."""

from dataclasses import dataclass

from traceaudit.model.llm.components import Component, Traffic, Weights
from traceaudit.model.llm.quantisation import KvDtype

__all__ = ["DeltaNet"]

STATE_BYTES = 4  # the recurrent state is fp32
CONV_BYTES = 2


@dataclass(frozen=True, slots=True)
class DeltaNet:
    """A gated delta net: each step reads and writes a state that does not depend on the context."""

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int

    @property
    def default_kv_dtype(self) -> KvDtype:
        """Not used: the state has types of its own."""
        return KvDtype.BF16

    @property
    def label(self) -> str:
        """Kind and heads."""
        return f"gated delta net, {self.value_heads} heads of {self.key_dim}x{self.value_dim}"

    def check(self, tp: int) -> str | None:
        """Return why `tp` ranks cannot share it, or None."""
        if self.key_heads % tp or self.value_heads % tp:
            return f"tp {tp} does not divide {self.key_heads} key and {self.value_heads} value heads"
        return None

    def weights(self, tp: int) -> tuple[Weights, ...]:
        """Return the projections in (queries, keys, values, gate, two rates) and out, and the convolution."""
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        projections = self.hidden * (2 * keys + 2 * values + 2 * self.value_heads) + values * self.hidden
        return (Weights.split(Component.LINEAR_ATTENTION, projections + self._channels() * self.conv, tp),)

    def traffic(self, context: int, dtype: KvDtype, tp: int) -> tuple[Traffic, ...]:  # noqa: ARG002  (fixed size)
        """Return the bytes of the recurrent and the convolution's state, read and written."""
        state = self.value_heads * self.key_dim * self.value_dim * STATE_BYTES
        tail = self._channels() * (self.conv - 1) * CONV_BYTES
        return (Traffic(Component.LINEAR_STATE, 2 * (state + tail) / tp),)

    def core_flop(self, context: int, tp: int) -> float:  # noqa: ARG002  (fixed size)
        """Return the FLOP of reading the state twice and updating it once."""
        return 6 * self.value_heads * self.key_dim * self.value_dim / tp

    def cache_copies(self, tp: int) -> int:  # noqa: ARG002  (split by heads)
        """Return 1: ranks split the state by heads."""
        return 1

    def _channels(self) -> int:
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

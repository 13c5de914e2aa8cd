"""A language model as a decode step sees it: layers of attention and feed-forward weights, a head, their formats."""

from collections import Counter
from dataclasses import dataclass, replace

from traceaudit.errors import UsageError
from traceaudit.model.llm.attention import Attention
from traceaudit.model.llm.components import Component, Weights
from traceaudit.model.llm.ffn import Dense, Experts
from traceaudit.model.llm.quantisation import Formats

__all__ = ["Architecture", "Layer", "ParameterCount"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer.

    Attributes
    ----------
    norm_elements
        Weights of its norms.
    hyper_elements
        Weights that mix several residual streams (DeepSeek V4), 0 where there is one stream.
    """

    attention: Attention
    ffn: Dense | Experts
    norm_elements: int
    hyper_elements: int = 0

    def weights(self, tp: int) -> tuple[Weights, ...]:
        """Return all weights that every token passes; routed experts are not among them."""
        parts = [*self.attention.weights(tp), *self.ffn.weights(tp)]
        parts.append(Weights.whole(Component.NORMS, self.norm_elements))
        if self.hyper_elements:
            parts.append(Weights.whole(Component.HYPER_CONNECTIONS, self.hyper_elements))
        return tuple(parts)


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Weights of the model, and those that one token passes (with its row of the embedding table left out)."""

    total: int
    active: int


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder-only language model.

    Attributes
    ----------
    name
        What the user called it.
    family
        The config's ``model_type``.
    tied
        Whether the head is the embedding table.
    draft
        A layer that drafts tokens (multi-token prediction), None where there is none.
    notes
        What was read from the config, and what had to be assumed.
    """

    name: str
    family: str
    hidden: int
    vocab: int
    layers: tuple[Layer, ...]
    tied: bool
    formats: Formats
    draft: Layer | None = None
    notes: tuple[str, ...] = ()

    @property
    def head_elements(self) -> int:
        """Weights of the head, tied or not."""
        return self.vocab * self.hidden

    def kinds(self) -> tuple[tuple[Layer, int], ...]:
        """Return the different layers, in order of appearance, and how many there are of each."""
        return tuple(Counter(self.layers).items())

    def with_formats(self, formats: Formats) -> "Architecture":
        """Return the same model stored otherwise."""
        return replace(self, formats=formats)

    def parameters(self) -> ParameterCount:
        """Count the weights."""
        fixed = sum(count * sum(part.elements for part in layer.weights(1)) for layer, count in self.kinds())
        experts = [layer.ffn for layer in self.layers if isinstance(layer.ffn, Experts)]
        everything = fixed + sum(ffn.count * ffn.expert_elements for ffn in experts)
        active = fixed + sum(ffn.per_token * ffn.expert_elements for ffn in experts)
        tables = self.head_elements * (1 if self.tied else 2)
        return ParameterCount(everything + tables + self.hidden, active + self.head_elements + self.hidden)

    def refuse(self, tp: int, ep: int, pp: int = 1) -> None:
        """Raise `UsageError` where so many ranks cannot share the model."""
        if pp > len(self.layers):
            raise UsageError(f"pp {pp} is more than {len(self.layers)} layers: engines refuse that", where=self.name)
        for layer, _ in self.kinds():
            problem = layer.attention.check(tp)
            if problem is None and isinstance(layer.ffn, Experts) and ep > layer.ffn.count:
                problem = f"ep {ep} is more than {layer.ffn.count} experts"
            if problem:
                raise UsageError(f"{problem}: engines refuse that", where=self.name)

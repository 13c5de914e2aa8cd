"""Feed-forward layers: dense, and mixtures of experts with the number of experts that a step touches."""

from dataclasses import dataclass

from traceaudit.model.llm.components import Component, Weights

__all__ = ["Dense", "Experts", "Touched", "touched"]


@dataclass(frozen=True, slots=True)
class Touched:
    """How many different experts the tokens of a step read in one layer.

    Attributes
    ----------
    minimum
        All tokens choose the same.
    expected
        Tokens choose alike and independently; real routing is skewed and correlated, and lies below.
    maximum
        No two tokens share one, as far as there are experts.
    """

    minimum: float
    expected: float
    maximum: float

    def times(self, factor: float) -> "Touched":
        """Return each count times a factor."""
        return Touched(self.minimum * factor, self.expected * factor, self.maximum * factor)


def touched(experts: int, per_token: int, tokens: int) -> Touched:
    """Return ``k``, ``E (1 - (1 - k/E)^T)`` and ``min(E, k T)`` for T tokens.

    Examples
    --------
    >>> round(touched(256, 8, 16).expected, 1)
    102.0
    >>> touched(256, 8, 1)
    Touched(minimum=8.0, expected=8.0, maximum=8.0)
    """
    if tokens == 1:
        return Touched(float(per_token), float(per_token), float(per_token))
    expected = experts * (1 - (1 - per_token / experts) ** tokens)
    return Touched(float(per_token), expected, float(min(experts, per_token * tokens)))


@dataclass(frozen=True, slots=True)
class Dense:
    """A feed-forward layer that every token passes: gate, up and down, or up and down only."""

    hidden: int
    width: int
    matrices: int = 3

    @property
    def elements(self) -> int:
        """Weights of the layer."""
        return self.matrices * self.hidden * self.width

    def weights(self, tp: int) -> tuple[Weights, ...]:
        """Return the weights, split over ranks."""
        return (Weights.split(Component.DENSE_FFN, self.elements, tp),)


@dataclass(frozen=True, slots=True)
class Experts:
    """A layer of `count` experts of which a token passes `per_token`, and a shared one that all tokens pass.

    Attributes
    ----------
    shared_width
        Width of all shared experts together, 0 where there are none.
    """

    hidden: int
    count: int
    per_token: int
    width: int
    shared_width: int = 0
    matrices: int = 3

    @property
    def expert_elements(self) -> int:
        """Weights of one routed expert."""
        return self.matrices * self.hidden * self.width

    def weights(self, tp: int) -> tuple[Weights, ...]:
        """Return what every token passes: the router, which each rank holds whole, and the shared experts."""
        parts = [Weights.whole(Component.ROUTER, self.count * self.hidden)]
        if self.shared_width:
            shared = self.matrices * self.hidden * self.shared_width
            parts.append(Weights.split(Component.SHARED_EXPERTS, shared, tp))
        return tuple(parts)

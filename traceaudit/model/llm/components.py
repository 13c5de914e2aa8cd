"""The parts that the bytes of a step are counted by, and a block of weights that belongs to one of them."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Component", "Traffic", "Weights"]


class Component(StrEnum):
    """A part of the model, or of what a step reads beside the weights."""

    ATTENTION = "attention"
    ATTENTION_REPLICATED = "attention_replicated"
    LINEAR_ATTENTION = "linear_attention"
    COMPRESSOR = "compressor"
    INDEXER = "indexer"
    DENSE_FFN = "dense_ffn"
    ROUTER = "router"
    ROUTED_EXPERTS = "routed_experts"
    SHARED_EXPERTS = "shared_experts"
    HYPER_CONNECTIONS = "hyper_connections"
    NORMS = "norms"
    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    DRAFT = "draft"
    ALL_WEIGHTS = "all_weights"
    KV_CACHE = "kv_cache"
    INDEXER_CACHE = "indexer_cache"
    LINEAR_STATE = "linear_state"

    @property
    def is_cache(self) -> bool:
        """Whether it belongs to requests and not to the model."""
        return self in {Component.KV_CACHE, Component.INDEXER_CACHE, Component.LINEAR_STATE}


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of one layer that every token passes.

    Attributes
    ----------
    component
        What they belong to.
    elements
        How many the model has.
    per_rank
        How many of them one tensor-parallel rank reads: all where they are replicated.
    """

    component: Component
    elements: int
    per_rank: float

    @classmethod
    def split(cls, component: Component, elements: int, tp: int) -> "Weights":
        """Return weights of which each of `tp` ranks holds an equal part."""
        return cls(component, elements, elements / tp)

    @classmethod
    def whole(cls, component: Component, elements: int) -> "Weights":
        """Return weights that every rank holds and reads whole."""
        return cls(component, elements, float(elements))


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of cache or state that one request moves in one layer on one rank."""

    component: Component
    size_bytes: float

"""How weights and cache are stored: bytes for each weight, scales included, and the data type that computes on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from traceaudit.errors import UsageError
from traceaudit.model.llm.components import Component

__all__ = ["COMPUTE_FALLBACK", "FORMATS", "QUANTISABLE", "Format", "Formats", "KvDtype", "named_format", "overridden"]


class KvDtype(StrEnum):
    """How a cache is stored."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    NVFP4 = "nvfp4"

    @property
    def size_bytes(self) -> float:
        """Bytes of one element, scales included."""
        return {KvDtype.FP8: 1.0, KvDtype.INT8: 1.0, KvDtype.NVFP4: 0.5 + 1 / 16}.get(self, 2.0)

    @property
    def compute(self) -> str:
        """Data type whose peak bounds the attention on it."""
        return "fp8" if self in {KvDtype.FP8, KvDtype.NVFP4} else "bf16"


@dataclass(frozen=True, slots=True)
class Format:
    """A way to store weights.

    Attributes
    ----------
    bytes_per_weight
        Bytes, with the scales' share.
    compute
        Data type whose peak bounds matrix products with them: that of the activations where only weights are small.
    """

    name: str
    bytes_per_weight: float
    compute: str


COMPUTE_FALLBACK: dict[str, tuple[str, ...]] = {
    "fp4": ("fp4", "fp8", "bf16", "fp16"),
    "fp8": ("fp8", "bf16", "fp16"),
    "int8": ("int8", "bf16", "fp16"),
    "bf16": ("bf16", "fp16"),
    "fp32": ("tf32", "fp32"),
}
"""Peaks to try, in order, where a device has none for a data type: small weights still move few bytes there."""

FORMATS: dict[str, Format] = {
    item.name: item
    for item in (
        Format("fp32", 4.0, "fp32"),
        Format("bf16", 2.0, "bf16"),
        Format("fp16", 2.0, "bf16"),
        Format("fp8", 1.0, "fp8"),
        Format("fp8_block128", 1 + 4 / 16384, "fp8"),  # an fp32 scale for 128 x 128 weights
        Format("fp8_block128_ue8m0", 1 + 1 / 16384, "fp8"),
        Format("fp8_weight_only", 1.0, "bf16"),
        Format("mxfp8", 1 + 1 / 32, "fp8"),
        Format("mxfp4", 0.5 + 1 / 32, "fp4"),
        Format("nvfp4", 0.5 + 1 / 16, "fp4"),
        Format("int8", 1.0, "int8"),
        Format("int8_weight_only", 1.0, "bf16"),
        Format("int4", 0.5 + 2.5 / 128, "bf16"),  # groups of 128 with a 16-bit scale and a 4-bit zero
        Format("nf4", 0.5 + 4 / 64, "bf16"),
        Format("nf4_double", 0.516, "bf16"),
    )
}

QUANTISABLE = frozenset(
    {
        Component.ATTENTION,
        Component.ATTENTION_REPLICATED,
        Component.LINEAR_ATTENTION,
        Component.INDEXER,
        Component.DENSE_FFN,
        Component.ROUTED_EXPERTS,
        Component.SHARED_EXPERTS,
        Component.DRAFT,
    }
)
"""Parts that quantisation methods shrink; router, norms, embedding and head keep the model's own type."""

GROUPS: dict[str, frozenset[Component]] = {
    "experts": frozenset({Component.ROUTED_EXPERTS}),
    "shared": frozenset({Component.SHARED_EXPERTS}),
    "attention": frozenset(
        {Component.ATTENTION, Component.ATTENTION_REPLICATED, Component.LINEAR_ATTENTION, Component.INDEXER}
    ),
    "ffn": frozenset({Component.DENSE_FFN}),
    "router": frozenset({Component.ROUTER}),
    "head": frozenset({Component.LM_HEAD}),
}


@dataclass(frozen=True, slots=True)
class Formats:
    """The format of each part.

    Attributes
    ----------
    base
        Of everything that is not named.
    by_component
        Of the parts that have one of their own.
    kv_dtype
        What the checkpoint says of the cache; None where it says nothing.
    notes
        What was read, and what had to be assumed.
    """

    base: Format
    by_component: Mapping[Component, Format] = field(default_factory=dict)
    kv_dtype: KvDtype | None = None
    notes: tuple[str, ...] = ()

    def of(self, component: Component) -> Format:
        """Return the format of a part."""
        return self.by_component.get(component, self.base)


def named_format(name: str) -> Format:
    """Return the format of that name.

    Raises
    ------
    UsageError
        If there is none.
    """
    try:
        return FORMATS[name.lower().replace("-", "_")]
    except KeyError:
        raise UsageError(f"unknown weight format {name!r}", hint=f"take one of {', '.join(FORMATS)}") from None


def overridden(formats: Formats, text: str) -> Formats:
    """Return the formats with those that the user names in place of the checkpoint's.

    ``fp8`` sets every part that quantisation shrinks; ``experts=mxfp4,head=bf16`` sets parts alone.

    Raises
    ------
    UsageError
        If a part or a format is unknown.

    Examples
    --------
    >>> overridden(Formats(FORMATS["bf16"]), "experts=mxfp4").of(Component.ROUTED_EXPERTS).bytes_per_weight
    0.53125
    """
    changed = dict(formats.by_component)
    for part in text.split(","):
        where, _, name = part.strip().rpartition("=")
        if where and where not in GROUPS:
            raise UsageError(f"unknown part {where!r} of the model", hint=f"take one of {', '.join(GROUPS)}")
        chosen = named_format(name)
        changed.update(dict.fromkeys(GROUPS[where] if where else QUANTISABLE, chosen))
    return Formats(formats.base, changed, formats.kv_dtype, (*formats.notes, f"weights stored as {text}, as given"))

"""Kernels that Inductor generates: what their names tell.

A name lists the fused ops, each once, sorted (``triton_poi_fused__unsafe_view_mul_silu_9``): which they are, but
neither how often they run nor on how much. A kernel that lists ``transpose`` or ``attention`` may do anything else
besides.
"""

import re
from functools import cache

__all__ = ["fused_words", "is_generated"]

_GENERATED = re.compile(r"^triton_(?:poi|per|red|for)_")
_PREFIX = re.compile(r"^triton_(?:poi|per|red|for)_(?:fused_)?")
_NUMBER = re.compile(r"_?\d+$")


def is_generated(name: str) -> bool:
    """Return whether a name is that of a pointwise kernel or reduction by Inductor."""
    return _GENERATED.match(name) is not None


@cache
def fused_words(name: str) -> frozenset[str]:
    """Return the words of the ops that a generated kernel fuses; none for other kernels.

    Examples
    --------
    >>> sorted(fused_words("triton_poi_fused__unsafe_view_mul_silu_9"))
    ['mul', 'silu', 'unsafe', 'view']
    >>> fused_words("nvjet_sm90_tst_64x8_64x16_4x2_h_bz_TNT")
    frozenset()
    """
    if not is_generated(name):
        return frozenset()
    return frozenset(filter(None, _NUMBER.sub("", _PREFIX.sub("", name)).split("_")))

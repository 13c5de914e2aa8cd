"""Which element by element ops, reductions and joins a kernel's name speaks of, in an eager step or fused."""

import re

from traceaudit.model.bytes.generated import fused_words, is_generated

__all__ = ["op_words"]

# fmt: off
_OPS = frozenset({
    "abs", "add", "amax", "amin", "argmax", "argmin", "cat", "clamp", "cos", "cumsum", "div", "embedding", "erf", "exp",
    "gather", "gelu", "index", "log", "max", "mean", "min", "mul", "neg", "pow", "relu", "rsqrt", "sigmoid", "silu",
    "sin", "softmax", "sqrt", "sub", "sum", "tanh", "where",
})
# fmt: on
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def op_words(name: str) -> frozenset[str]:
    """Return the ops that a name speaks of; copies and views are none, since almost any kernel fuses some.

    Examples
    --------
    >>> sorted(op_words("triton_poi_fused__unsafe_view_mul_silu_9"))
    ['mul', 'silu']
    >>> op_words("void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<MulFunctor<float> > >")
    frozenset({'mul'})
    >>> op_words("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT")
    frozenset()
    """
    if is_generated(name):
        return fused_words(name) & _OPS
    return frozenset(word.lower() for word in _WORDS.findall(name)) & _OPS

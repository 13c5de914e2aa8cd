"""What a kernel does in a decoder layer, as far as its name tells."""

import re
from enum import StrEnum
from functools import cache

from traceaudit.model.bytes.generated import fused_words, is_generated
from traceaudit.model.bytes.split import is_helper
from traceaudit.model.kinds import function_of

__all__ = ["KernelClass", "kernel_class"]


class KernelClass(StrEnum):
    """Classes that the search for roles tells apart."""

    GEMM = "gemm"
    ATTENTION = "attention"
    EXPERTS = "experts"
    NORM = "norm"
    ROTARY = "rotary"
    CACHE_WRITE = "cache_write"
    ACTIVATION = "activation"
    GATHER = "gather"
    SAMPLING = "sampling"
    HELPER = "helper"
    OTHER = "other"


_GROUPED = "GroupProblemShape"
"""CUTLASS names so what one launch multiplies by several weights."""

_RULES: tuple[tuple[KernelClass, re.Pattern[str]], ...] = (
    (
        KernelClass.EXPERTS,
        re.compile(r"(?i)fused_moe|matmul_ogs|^bmm_\w*E2m1|moe_.*gemm|group(?:ed)?_?gemm|moe.*(?:gemv|mm)\b"),
    ),
    (
        KernelClass.CACHE_WRITE,
        re.compile(
            r"(?i)reshape_and_cache|store_?kv|kv_?cache_?(?:write|store|copy|update)|index_copy|set_kv|append_kv"
        ),
    ),
    (KernelClass.ROTARY, re.compile(r"(?i)rotary|rope(?![a-z]*_attn)")),
    (
        KernelClass.ATTENTION,
        re.compile(
            r"(?i)fmha|flash|sdpa|attention|attn|paged|mla_|_mla|sparse_decode|decode_kernel|BatchDecode|fprop_wmma"
        ),
    ),
    (KernelClass.NORM, re.compile(r"(?i)rms_?norm|layer_?norm|norm_kernel|RMSNorm")),
    (KernelClass.ACTIVATION, re.compile(r"(?i)silu|swiglu|gelu|act_and_mul|glu_kernel")),
    (
        KernelClass.GEMM,
        re.compile(
            r"(?i)nvjet|gemm|gemv|cutlass|cublas|_mm_|matmul|xmma|marlin|machete|wvSplitK|Cijk_|hipblaslt|deep_gemm|"
            r"scaled_mm|^triton_tem_|^triton_mm|tinygemm|pack_mm"
        ),
    ),
    (KernelClass.SAMPLING, re.compile(r"(?i)argmax|sampl|top_?[kp]|softmax|logits")),
    (KernelClass.GATHER, re.compile(r"(?i)embedding|index_?select|gather")),
)
"""The first rule that finds something decides."""


@cache
def kernel_class(name: str) -> KernelClass:
    """Return what a kernel does by its name.

    Examples
    --------
    >>> kernel_class("nvjet_sm90_tst_64x8_64x16_4x2_h_bz_TNT").value
    'gemm'
    >>> kernel_class("void cudnn::fusion::lean_reduction_kernel<false>(void*)").value
    'helper'
    >>> kernel_class("void cutlass::device_kernel<GemmUniversal<cutlass::gemm::GroupProblemShape<int> > >(P)").value
    'experts'
    >>> kernel_class("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64>>(Params)").value
    'attention'
    """
    function = function_of(name)
    if is_generated(function):
        return _generated_class(fused_words(function))
    if is_helper(function):
        return KernelClass.HELPER
    if _GROUPED in name:  # a template argument, where the name is spelt out
        return KernelClass.EXPERTS
    found = next((kind for kind, pattern in _RULES if pattern.search(function)), None)
    if found is None:  # what a generic kernel is specialised for stands in its template arguments
        found = next((kind for kind, pattern in _RULES if kind not in _BY_FUNCTION and pattern.search(name)), None)
    return found or KernelClass.OTHER


_VIEWS = frozenset({"unsafe", "view", "split", "with", "sizes", "slice", "select", "transpose", "permute", "squeeze"})
_NO_WORK = _VIEWS | {"unsqueeze", "expand", "reshape", "clone", "to", "copy", "t"}
_ACTIVATIONS = frozenset({"silu", "gelu", "swiglu"})
_NORMS = frozenset({"norm"})
_GENERATED_CLASSES: tuple[tuple[KernelClass, frozenset[str], frozenset[str]], ...] = (
    (KernelClass.ACTIVATION, _ACTIVATIONS, _ACTIVATIONS | {"mul", "sigmoid"}),
    (KernelClass.NORM, _NORMS, _NORMS | {"fused", "native", "rms", "layer", "mean", "pow", "rsqrt", "var", "mul"}),
)
"""Class, words of which one must be there, and all words that may."""


def _generated_class(words: frozenset[str]) -> KernelClass:
    """Return what a generated kernel does, where all that it fuses serves one purpose."""
    doing = words - _NO_WORK
    found = (kind for kind, needed, allowed in _GENERATED_CLASSES if doing & needed and doing <= allowed)
    return next(found, KernelClass.OTHER)


_BY_FUNCTION = {KernelClass.GEMM, KernelClass.EXPERTS, KernelClass.ATTENTION}

"""How an op's bytes are shared by the kernels that one call of it launched.

Inputs are read by the kernels that do the op's work, in proportion to their time; kernels that prepare, combine or
reduce for them work on data that never had to leave the cache. Outputs are written by the last kernel. Each call is
counted once, so the shares sum to the op's bytes exactly.
"""

import re
from collections.abc import Sequence
from functools import cache

from traceaudit.model.bytes.generated import is_generated

__all__ = ["is_helper", "share_inputs"]

_HELPER = re.compile(
    r"(?i)split_?k_?reduce|lean_reduction|combine|attention_?\w*_reduce|merge_(?:attn_)?states?|reduce_?segments|prepare|align_block|moe_sum|finalize|"
    r"permut|sort|topk|histogram|count|fill|memset|zero|quantiz|dequant|convert|transpose|metadata|sched"
)


@cache
def is_helper(name: str) -> bool:
    """Return whether a kernel's name is that of a helper beside the kernel that does an op's work.

    Examples
    --------
    >>> is_helper("void cublasLt::splitKreduce_kernel<32, 16>(int)"), is_helper("nvjet_tst_64x8_v_bz_splitK_TNT")
    (True, False)
    """
    return not is_generated(name) and _HELPER.search(name) is not None


def share_inputs(total: int, names: Sequence[str], times_ns: Sequence[int]) -> list[int]:
    """Share an op's input bytes (or FLOP) among its kernels; the shares are whole and sum to the total.

    Examples
    --------
    >>> share_inputs(100, ["gemm", "splitKreduce"], [800, 200])
    [100, 0]
    >>> share_inputs(100, ["fused_moe", "act", "fused_moe"], [200, 50, 100])
    [57, 14, 29]
    """
    working = [index for index, name in enumerate(names) if not is_helper(name)] or list(range(len(names)))
    time = sum(times_ns[index] for index in working)
    shares = [0] * len(names)
    if not time:
        shares[working[0]] = total
        return shares
    elapsed = given = 0
    for index in working:
        elapsed += times_ns[index]
        share = (2 * total * elapsed + time) // (2 * time) - given
        shares[index] = share
        given += share
    return shares

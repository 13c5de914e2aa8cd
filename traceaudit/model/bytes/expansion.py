"""Keys and values written out once for each query head, before an attention that could share them.

With grouped queries several query heads share a head of keys and values. Software without a kernel for that first
copies each as often as it is shared (``repeat_kv``): the step writes and reads a multiple of the cache. Such a copy
has a head of all cached tokens for each query head, which its grid shows.
"""

from traceaudit.model.bytes.generated import is_generated
from traceaudit.model.bytes.geometry import walk_of
from traceaudit.model.llm.architecture import Layer
from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.workload import Workload

__all__ = ["FEWEST_BLOCKS", "expanded_elements", "parts_copied"]

FEWEST_BLOCKS = 256
"""Below this, other kernels may have the same grid by chance."""

_BLOCK_ELEMENTS = tuple(1 << power for power in range(6, 14))
"""Elements of a block of a generated kernel: powers of two."""


def expanded_elements(layer: Layer, workload: Workload) -> int:
    """Return the elements of the keys, or the values, with a head for each query head; 0 where none are shared."""
    mixer = layer.attention
    if not isinstance(mixer, GroupedQuery) or mixer.head_dim != mixer.value_dim:
        return 0
    tp = workload.parallelism.tp
    if mixer.heads / tp <= max(1.0, mixer.kv_heads / tp):
        return 0
    return round(workload.batch * max(workload.contexts) * mixer.heads / tp * mixer.head_dim)


def parts_copied(name: str, blocks: int, threads: int, elements: int) -> int:
    """Return how many of keys and values, of `elements` each, a kernel writes out: 0, 1 or 2.

    Examples
    --------
    >>> parts_copied("triton_poi_fused_clone_expand_6", 16400, 128, 8 * 1025 * 16 * 128)
    1
    >>> parts_copied("triton_poi_fused_clone_expand_6", 16384, 128, 8 * 1025 * 16 * 128)
    0
    """
    if not elements or blocks < FEWEST_BLOCKS:
        return 0
    return next((parts for parts in (1, 2) if _walks(name, blocks, threads, parts * elements)), 0)


def _walks(name: str, blocks: int, threads: int, elements: int) -> bool:
    if is_generated(name):
        return any(-(-elements // each) == blocks for each in _BLOCK_ELEMENTS)
    walk = walk_of(name, blocks, threads)
    return walk is not None and walk.inputs == 1 and walk.elements - walk.block_elements < elements <= walk.elements

"""Elements that PyTorch's own element by element kernels walk over, by their grid.

ATen launches ``elementwise_kernel<threads, each>`` and ``vectorized_elementwise_kernel<width, …>`` with just enough
blocks for the elements, so a grid tells their number up to the last block (aten/src/ATen/native/cuda/CUDALoops.cuh).
"""

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Walk", "walk_of"]

_PLAIN = re.compile(r"(?:^|:)(?:index_)?elementwise_kernel<(\d+), (\d+),")
_VECTOR = re.compile(r"(?:vectorized|unrolled)_elementwise_kernel<(?:(\d+), )?")
_POINTERS = re.compile(r"std::array<char\*, (\d+)ul?>")
_TYPES = (("c10::BFloat16", 2), ("c10::Half", 2), ("double", 8), ("float", 4), ("long", 8), ("int", 4))
_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
MOST_TENSORS = 8


@dataclass(frozen=True, slots=True)
class Walk:
    """What an element by element kernel walks over.

    Attributes
    ----------
    elements
        Of the result, rounded up to whole blocks.
    inputs
        Tensors read beside the one written.
    item_bytes
        Bytes of an element.
    block_elements
        Elements of a block.
    """

    elements: int
    inputs: int
    item_bytes: int
    block_elements: int


@lru_cache(maxsize=4096)
def walk_of(name: str, blocks: int, threads: int) -> Walk | None:
    """Return what a kernel of PyTorch walks over; None for other kernels, and where the name does not tell.

    Examples
    --------
    >>> name = "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, "
    >>> walk_of(name + "std::array<char*, 3ul> >(int)", 32, 128)
    Walk(elements=32768, inputs=2, item_bytes=2, block_elements=1024)
    """
    size = _item_bytes(name)
    plain = _PLAIN.search(name)
    if size is None or blocks < 1:
        return None
    if plain is not None:
        each = int(plain[2]) * int(plain[1])
    elif _VECTOR.search(name) is not None:
        each = threads * (8 if size <= 2 else 4)  # noqa: PLR2004  (elements a thread, by their size)
    else:
        return None
    return Walk(blocks * each, _inputs(name), size, each)


def _item_bytes(name: str) -> int | None:
    opaque = _OPAQUE.search(name)
    if opaque is not None:
        return int(opaque[1])
    return next((size for kind, size in _TYPES if re.search(rf"[<, (]{kind}[>, )]", name)), None)


def _inputs(name: str) -> int:
    pointers = _POINTERS.search(name)
    if pointers is not None:
        return min(max(int(pointers[1]) - 1, 0), MOST_TENSORS)
    return 2 if "BinaryFunctor" in name or "CUDAFunctor_add" in name else 1

"""What stays of a kernel's name from one build to the next, and classes of launch shapes.

A name is volatile where a compiler writes a hash, a counter or an address into it. What is cut off is never more than
that: two kernels that differ in a template argument keep different identities.

Inductor numbers its kernels. From one compilation to the next a number says nothing, but within a step two numbers are
two kernels: such ones get places behind their identity (``#1``, ``#2``), in order of their first launch.
"""

import re
from collections.abc import Collection

__all__ = ["NO_SHAPE", "family_of", "identity_of", "numbered_identity", "placed", "shape_class", "sizes_of"]

NO_SHAPE = -1
"""Class of ops whose grid (or size, for copies) is not recorded."""

_PLACE = re.compile(r"(?<=\w)#\d+$")
_MARK = r"(?:de|d|c|e)"
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b"), "0x"),  # addresses
    # Hashes: hexadecimal words of 8 digits or more in which letters and digits mix.
    (re.compile(r"(?<=[_.\-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,64}(?![0-9A-Za-z])"), ""),
    (re.compile(r"(?<=[_.\-])[a-z2-7]{26}[a-z2-7]*(?![0-9A-Za-z])"), ""),  # Inductor's base32 hashes
    (re.compile(r"(\{lambda\([^{}]*\))#\d+\}"), r"\1}"),  # the compiler counts lambdas
    (re.compile(r"(\$_)\d+"), r"\1"),
    (re.compile(r"\.kd$"), ""),  # ROCm's kernel descriptor
    # Triton's specialisation of arguments, as in _fwd_kernel_0d1d2d3de4c; two marked ones at least: conv_3d stays.
    (re.compile(rf"_(?:\d+{_MARK}?)*\d+{_MARK}\d+{_MARK}(?:\d+{_MARK}?)*$"), ""),
)
_NUMBERED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^(triton_[a-z]+_fused_\w*?)_\d+(?=$|_)(?:_\d+)*$"), r"\1"),  # Inductor counts its kernels
    (re.compile(r"^(triton_(?:tem|for|unk|mm)_\w*?)_\d+$"), r"\1"),
)


def identity_of(name: str) -> str:
    """Return a kernel's name without what changes from build to build.

    Examples
    --------
    >>> identity_of("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_7")
    'triton_red_fused__to_copy_add_mean_mul_pow_rsqrt'
    >>> identity_of("_fwd_kernel_0d1d2d3de4de"), identity_of("gemm_kernel_3fa9c01d77b2")
    ('_fwd_kernel', 'gemm_kernel')
    >>> identity_of("nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT")
    'nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT'
    """
    text = numbered_identity(name)
    for pattern, kept in _NUMBERED:
        text = pattern.sub(kept, text)
    return text.rstrip("_.-") or name.strip()


def numbered_identity(name: str) -> str:
    """Return a kernel's name without what changes from build to build, but with the number that Inductor gave it."""
    text = name.strip()
    for pattern, kept in _VOLATILE:
        text = pattern.sub(kept, text)
    return text.rstrip("_.-") or name.strip()


def placed(identity: str, place: int) -> str:
    """Return the identity of one of several kernels of a step that only their numbers tell apart; places from 1."""
    return f"{identity}#{place}"


def family_of(identity: str) -> str:
    """Return an identity without its place.

    Examples
    --------
    >>> family_of(placed("triton_poi_fused_add", 2)), family_of("triton_poi_fused_add")
    ('triton_poi_fused_add', 'triton_poi_fused_add')
    """
    return _PLACE.sub("", identity)


def shape_class(size: int) -> int:
    """Return the power of two below the number of blocks of a grid (or bytes of a copy), `NO_SHAPE` if there is none.

    Call sites of one kernel usually differ by more; a grid that grows with the context seldom leaves its class.

    Examples
    --------
    >>> shape_class(132), shape_class(1), shape_class(-1)
    (7, 0, -1)
    """
    return size.bit_length() - 1 if size > 0 else NO_SHAPE


def sizes_of(classes: Collection[int]) -> tuple[int, int] | None:
    """Return the least and the most blocks (or bytes) that launches of these classes have, None if one has `NO_SHAPE`.

    Examples
    --------
    >>> sizes_of([7]), sizes_of([0, 2]), sizes_of([NO_SHAPE])
    ((128, 255), (1, 7), None)
    """
    if not classes or min(classes) == NO_SHAPE:
        return None
    return 2 ** min(classes), 2 ** (max(classes) + 1) - 1

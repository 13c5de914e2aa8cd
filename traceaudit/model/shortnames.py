"""Kernel names short enough for a table, different for different kernels; and what a name tells of the units used."""

import re
from collections.abc import Iterable, Sequence

from traceaudit.model.kinds import function_of

__all__ = ["core_of", "shortened"]

_NOISE = ("at::native::", "anonymous::", "cutlass::", "std::", "c10::", "cub::", "thrust::", "cudnn::", "cublasLt::")
_COPIES = ("Memcpy ", "Memset ")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+")
_GENERIC = re.compile(r"elementwise_kernel|reduce_kernel|device_kernel|Kernel2|CatArray|DeviceRadixSort|DeviceScan")
_TENSOR = re.compile(
    r"(?i)nvjet|wgmma|wmma|hmma|imma|xmma|tensorop|[a-z_]\d+816|16816|m16n8k|tcgen05|umma|mfma|Cijk_.*_MI|"
    r"cutlass_?(?:80|90|100)_tensor|cutlass3x|GemmUniversal|sm(?:80|90|100)_.*gemm|tinygemm|ck_tile|marlin"
)
_CUDA = re.compile(r"(?i)gemv|simt|sgemm|dot_kernel|slot_gemv|ffma")


def shortened(names: Sequence[str]) -> dict[str, str]:
    """Return a short form of each name; two names never share one.

    Generic kernels keep what they are specialised for. Where short forms meet, the first words in which the names
    differ are added, and where that is not enough a number.

    Examples
    --------
    >>> list(shortened(["void at::native::reduce_kernel<512, SumOps<float>>(int)", "nvjet_64x8_TNT"]).values())
    ['reduce_kernel<SumOps>', 'nvjet_64x8_TNT']
    """
    unique = list(dict.fromkeys(names))
    short = {name: _short(name) for name in unique}
    meeting: dict[str, list[str]] = {}
    for name in unique:
        meeting.setdefault(short[name], []).append(name)
    for text, sharing in meeting.items():
        if len(sharing) > 1:
            short.update(_told_apart(text, sharing))
    taken: dict[str, int] = {}
    for name in unique:
        count = taken[short[name]] = taken.get(short[name], 0) + 1
        if count > 1:
            short[name] = f"{short[name]} #{count}"
    return short


def core_of(name: str) -> str | None:
    """Return which units multiply, ``tensor`` or ``cuda``, where the name tells.

    Examples
    --------
    >>> core_of("nvjet_sm90_tst_64x8_TNT"), core_of("gemv2T_kernel_val<int>"), core_of("triton_poi_fused_0")
    ('tensor', 'cuda', None)
    """
    if _CUDA.search(name):
        return "cuda"
    return "tensor" if _TENSOR.search(name) else None


def _short(name: str) -> str:
    if name.startswith(_COPIES):
        return name
    function = function_of(name)
    for noise in _NOISE:
        function = function.replace(noise, "")
    if _GENERIC.search(function):
        what = _specialised(name)
        function = f"{function}<{what}>" if what else function
    return function or name


def _specialised(name: str) -> str | None:
    """Return the functor in a generic kernel's template arguments: the first that says what is computed."""
    arguments = name.partition("<")[2]
    found = re.search(r"(\w+(?:Ops|Functor|_kernel_cuda|_kernel_impl|_kernel)\w*|CUDAFunctor\w*)", arguments)
    inner = re.search(r"(?:native::|anonymous namespace\)::)(\w+_kernel(?:_cuda|_impl)?)\b", arguments)
    best = inner[1] if inner and not inner[1].startswith("gpu_kernel") else found[1] if found else None
    if best is not None and best.startswith("gpu_kernel_impl"):
        later = re.findall(
            r"(\w+(?:Ops|Functor|_kernel_cuda|_kernel_impl|_kernel)\b|CUDAFunctor\w*|\w+Functor)", arguments
        )
        best = next((word for word in later if not word.startswith("gpu_kernel_impl")), best)
    return best


def _told_apart(text: str, names: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Add to each name the first words that not all of them have in the same place."""
    words = [_WORD.findall(name) for name in names]
    length = min(map(len, words))
    differing = [place for place in range(length) if len({own[place] for own in words}) > 1][:3]
    for name, own in zip(names, words, strict=True):
        extra = " ".join(own[place] for place in differing)
        yield name, f"{text} [{extra}]" if extra else text

"""Kernel names short enough for a table, different for different kernels; and what a name tells of the units used."""

import re
from collections.abc import Iterator, Sequence

from traceaudit.model.kinds import function_of
from traceaudit.model.mangling import demangled

__all__ = ["core_of", "shortened"]

_NOISE = (
    "at_cuda_detail::",
    "at::native::",
    "anonymous::",
    "cutlass::",
    "std::",
    "c10::",
    "cub::",
    "thrust::",
    "cudnn::",
    "cublasLt::",
)
_COPIES = ("Memcpy ", "Memset ")
_GENERIC = re.compile(r"elementwise|reduce_kernel|multi_tensor_apply")
_WRAPPERS = frozenset({"Kernel", "Kernel2", "device_kernel", "kentry"})
"""Kernels that only run what their first template argument names."""
_QUALIFIED = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
_ENABLING = re.compile(r"enable_|(?:bool|int|unsigned|true|false|_)$")
_GROUPED = re.compile(r"\b\w{0,20}(?:Group|MoE)\w{0,20}ProblemShape\b")
_FUNCTOR = re.compile(
    r"\b(?:CUDAFunctor\w*|\w+Functor|\w+CUDAKernelImpl|\w+Ops|launch_\w+|\w+_(?:kernel(?:_cuda|_impl)?|cuda_kernel|functor|cuda_out))\b"
)
_ADAPTER = re.compile(r"gpu_(?:index_)?kernel|(?:[AB]?Unary|Binary)Functor$|elementwise_kernel$")
_ON_A_SCALAR = re.compile(r"[AB]UnaryFunctor$")
_AFFIX = re.compile(
    r"^launch_|Functor$|CUDAKernelImpl$|_(?:cuda_kernel|kernel_cuda|kernel_impl|kernel|functor|cuda_out)$"
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TENSILE = re.compile(r"(Cijk(?:_[A-Za-z]+){3}).*?(_MT\d+x\d+x\d+)")
_WORD = re.compile(r"[A-Za-z_]\w*|\d+\w*")
_PART = re.compile(r"[A-Za-z0-9]+")
_TELLS_LITTLE = re.compile(
    r"(?:at|native|c10|std|cute|cutlass|anonymous|namespace|const|unsigned|void|operator|lambda|_|TensorIterator\w*|gpu_kernel\w*)$"
)
MOST_WORDS = 3
"""Words that tell apart kernels whose short forms meet."""

_TENSOR = re.compile(
    r"(?i)nvjet|wgmma|wmma|hmma|imma|xmma|tensorop|[a-z_]\d+816|16816|m16n8k|tcgen05|umma|mfma|Cijk_.*_MI|"
    r"cutlass_?(?:80|90|100)_tensor|cutlass3x|GemmUniversal|sm(?:80|90|100)_.*gemm|tinygemm|ck_tile|marlin"
)
_CUDA = re.compile(r"(?i)gemv|simt|sgemm|dot_kernel|slot_gemv|ffma")


def shortened(names: Sequence[str]) -> dict[str, str]:
    """Return a short form of each name; two names never share one, and the order of the names decides nothing.

    Generic kernels keep what they are specialised for. Where short forms meet, the words that not all of the names have
    are added, and where that is not enough a number.

    Examples
    --------
    >>> list(shortened(["void at::native::reduce_kernel<512, SumOps<float>>(int)", "nvjet_64x8_TNT"]).values())
    ['reduce_kernel<SumOps>', 'nvjet_64x8_TNT']
    """
    unique = sorted(set(names))
    short = {name: _short(name) for name in unique}
    meeting: dict[str, list[str]] = {}
    for name in unique:
        meeting.setdefault(short[name], []).append(name)
    for text, sharing in meeting.items():
        if len(sharing) > 1:
            short.update(_told_apart(text, sharing))
    taken: set[str] = set()
    for name in unique:
        text, number = short[name], 1
        while short[name] in taken:
            number += 1
            short[name] = f"{text} #{number}"
        taken.add(short[name])
    return {name: short[name] for name in names}


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
    if tensile := _TENSILE.match(name):
        return tensile[1] + tensile[2]
    text = demangled(name)
    function = function_of(text)
    for noise in _NOISE:
        function = function.replace(noise, "")
    last = function.rpartition("::")[2]
    if last in _WRAPPERS:
        function = _wrapped(_arguments(text, last)) or function
    elif _GENERIC.search(function):
        what = _specialised(_arguments(text, last))
        function = f"{function}<{what}>" if what else function
    return function or name


def _arguments(text: str, function: str) -> str:
    """Return what stands behind the opening of a function's template arguments."""
    return text.partition(f"{function}<")[2]


def _wrapped(arguments: str) -> str | None:
    """Return the kernel that a wrapper runs, with its problem shape where that is one of groups."""
    names = (found[0].rpartition("::")[2] for found in _QUALIFIED.finditer(arguments))
    inner = next((name for name in names if not _ENABLING.match(name)), None)
    grouped = _GROUPED.search(arguments)
    return f"{inner}<{grouped[0]}>" if inner is not None and grouped else inner


def _specialised(arguments: str) -> str | None:
    """Return what a generic kernel computes: the first functor that is no adapter of another."""
    on_a_scalar = False
    for found in _FUNCTOR.finditer(arguments):
        word = found[0]
        if not _ADAPTER.match(word):
            return _operation(word) + ("_scalar" if on_a_scalar else "")
        on_a_scalar = on_a_scalar or _ON_A_SCALAR.match(word) is not None
    return None


def _operation(functor: str) -> str:
    """Return the operation of a functor as PyTorch calls it: ``mul`` for ``MulFunctor``."""
    if functor.startswith("CUDAFunctor"):
        adapter, _, operation = functor.partition("_")
        return operation if adapter == "CUDAFunctor" else f"{operation}_scalar"
    operation = _AFFIX.sub("", functor)
    return _CAPITAL.sub("_", operation).lower() if functor.endswith(("Functor", "KernelImpl")) else operation


def _told_apart(text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Add to each name the words that not all of them have, telling ones first, as few as tell them apart."""
    words = [_words(name) for name in names]
    common = set(words[0]).intersection(*words[1:])
    own = [sorted((word for word in each if word not in common), key=_rank) for each in words]
    tries = [[" ".join(each[:count]) for each in own] for count in range(1, MOST_WORDS + 1)]
    extra = next((each for each in tries if len(set(each)) == len(names)), tries[-1])
    for name, added in zip(names, extra, strict=True):
        yield name, f"{text} [{added}]" if added else text


def _words(name: str) -> list[str]:
    """Return the different words of a name, in order."""
    text = demangled(name)
    pattern = _WORD if "<" in text or "(" in text else _PART
    return list(dict.fromkeys(pattern.findall(text)))


def _rank(word: str) -> int:
    """Return how little a word tells."""
    if _TELLS_LITTLE.match(word):
        return 2
    return 1 if word[0].isdecimal() else 0

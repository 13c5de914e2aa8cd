"""What a device op is for: compute, communication, copy or fill, from ordered rules kept as data.

The first rule that matches decides, and says why. Name rules look at the function alone: return type, template
arguments and parameters are cut off first, so ``elementwise_kernel<..., direct_copy_kernel_cuda ...>`` is not fooled by
what it is specialised for. Only rules that ask for the whole name see them. Mangled names are demangled first.

Three decisions where a name could be read both ways:

- A collective fused with a norm or a quantisation (``allreduce_fusion_kernel_oneshot_lamport``) is communication: it
  waits for its peers, and the arithmetic is a few operations an element.
- A matrix multiplication fused with a collective is compute: the device multiplies while the data travels.
- A kernel that prepares or awaits the data of a collective inside a communication library is communication.
"""

import re
from dataclasses import dataclass

from traceaudit.model.mangling import demangled
from traceaudit.model.schema import Kind, OpType

__all__ = ["RULES", "KindRule", "classify", "function_of"]


@dataclass(frozen=True, slots=True)
class KindRule:
    """One rule; it matches when everything that it asks for holds.

    Attributes
    ----------
    kind
        What the op is when the rule matches.
    pattern
        Found (`re.search`) in the function, see `function_of`; None asks for no name.
    reason
        Why the rule says so, and whose kernels it knows.
    op_type
        Category that the row must have; None takes any.
    needs_collective
        Whether the row must carry a collective's metadata.
    whole_name
        Whether `pattern` is looked for in the whole name, template arguments and parameters included.
    """

    kind: Kind
    pattern: re.Pattern[str] | None
    reason: str
    op_type: OpType | None = None
    needs_collective: bool = False
    whole_name: bool = False

    def matches(self, name: str, function: str, op_type: OpType, *, has_collective: bool) -> bool:
        """Return whether the rule holds for an op of this name, function and category."""
        if self.op_type is not None and self.op_type != op_type:
            return False
        if self.needs_collective and not has_collective:
            return False
        return self.pattern is None or self.pattern.search(name if self.whole_name else function) is not None


def _named(kind: Kind, pattern: str, reason: str, *, whole_name: bool = False) -> KindRule:
    return KindRule(kind, re.compile(pattern), reason, op_type=OpType.KERNEL, whole_name=whole_name)


def _comm(pattern: str, reason: str, *, whole_name: bool = False) -> KindRule:
    return _named(Kind.COMM, pattern, reason, whole_name=whole_name)


_COLLECTIVE = "(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)"
_COLLECTIVE_CAMEL = "(?:All(?:[Rr]educe|[Gg]ather|[Tt]o[Aa]ll)|ReduceScatter)"

RULES: tuple[KindRule, ...] = (
    KindRule(Kind.MEMCPY, None, "a copy row", op_type=OpType.MEMCPY),
    KindRule(Kind.MEMSET, None, "a fill row", op_type=OpType.MEMSET),
    KindRule(
        Kind.COMM, None, "carries a collective's metadata (torch.distributed)", OpType.KERNEL, needs_collective=True
    ),
    # Copies and fills that a writer books as kernels.
    _named(
        Kind.MEMCPY,
        r"^(?:hip|cuda)?Memcpy(?:Async)?$|^Memcpy \w+to\w+(?: \(.*\))?$",
        "a copy in a row without a copy's category",
        whole_name=True,
    ),
    _named(Kind.MEMSET, r"^Memset(?: \(.*\))?$", "a fill in a row without a fill's category", whole_name=True),
    _named(Kind.MEMCPY, r"^(?:__amd_rocclr_copy\w+|copy(?:Buffer|Image)\w*)(?:\.kd)?$", "ROCm's copy kernel (ROCclr)"),
    _named(
        Kind.MEMSET, r"^(?:__amd_rocclr_fill\w+|[fF]ill(?:Buffer|Image)\w*)(?:\.kd)?$", "ROCm's fill kernel (ROCclr)"
    ),
    _named(
        Kind.MEMCPY,
        r"^Copy(?:Host|Device)To(?:Host|Device)$|^MEMORY_COPY_(?:HOST|DEVICE)_TO_(?:HOST|DEVICE)$",
        "a copy that roctracer or rocprofiler books as a kernel",
    ),
    # Communication libraries.
    _comm(r"\bnccl[A-Z]\w*", "NCCL, or RCCL under NCCL's names (ncclDevKernel_*, ncclSymkDevKernel_*)"),
    _comm(r"\brccl[A-Z_]\w*", "RCCL (rcclGenericKernel)"),
    _comm(r"\bmscclKernel", "MSCCL, as built into RCCL (mscclKernel_*)"),
    _comm(r"\bmscclpp::", "MSCCL++, in its namespace or on its channels", whole_name=True),
    _comm(r"\ballreduce_LL_[12]node", "MSCCL++ all-reduce of SGLang"),
    _comm(r"\bhcom_\w|\bhccl(?:::|_)", "HCCL (hcom_allReduce_, hccl::)"),
    _comm(r"\boneccl_\w|\bccl::|\bxccl(?:::|_)", "oneCCL"),
    _comm(r"\bgloo::", "Gloo"),
    _comm(r"nvshmem|rocshmem|ishmem", "NVSHMEM and its kin"),
    _comm(
        r"\b(?:barrier|sync|alltoall|fcollect|broadcast|reduce|reducescatter|rdxn)_on_stream_kernel",
        "NVSHMEM's collectives on a stream (barrier_on_stream_kernel_threadgroup)",
    ),
    # Names that only sound like communication; before the engines, whose kernels have longer names.
    _named(
        Kind.COMPUTE,
        r"^triton_(?:poi|per|red|tem|for|unk|mm)_",
        "Inductor's fused kernel: the graph nodes in its name may be collectives, the kernel is none",
    ),
    _named(
        Kind.COMPUTE,
        rf"(?i)^(?=.*(?:gemm|matmul)).*{_COLLECTIVE}",
        "a matrix multiplication fused with a collective: the device computes while data travels",
    ),
    _named(
        Kind.COMPUTE,
        rf"(?i)(?:block|warp|thread|wave|cta|cluster|quad|row|lane)_?{_COLLECTIVE}",
        "a reduction inside one device",
    ),
    # Communication kernels of engines and their libraries.
    _comm(r"cross_device_reduce_", "custom all-reduce of vLLM, SGLang and AITER (cross_device_reduce_1stage)"),
    _comm(r"reduce_scatter_cross_device", "AITER's fused all-reduce, its reduce-scatter half"),
    _comm(r"\bquickreduce::|\ballreduce_prototype_", "quick all-reduce of vLLM, SGLang and AITER"),
    _comm(
        r"(?i)(?:one|two)_?shot_?all_?reduce",
        "one-shot or two-shot all-reduce (TensorRT-LLM, FlashInfer, PyTorch symmetric memory)",
    ),
    _comm(r"(?i)all_?reduce_?fusion", "fused all-reduce of FlashInfer, TensorRT-LLM and AITER"),
    _comm(r"(?i)lamport", "awaits the data of its peers by Lamport flags (TensorRT-LLM, FlashInfer)"),
    _comm(r"userbuffers", "Userbuffers (Transformer Engine, TensorRT-LLM)"),
    _comm(r"\bmoeA2A|\bmoe_comm::", "expert all-to-all of TensorRT-LLM and FlashInfer (moeA2ADispatchKernel)"),
    _comm(
        r"\bdeep_ep::|\bhybrid_ep::|\b(?:internode|intranode)(?:_ll)?::",
        "expert dispatch and combine of DeepEP and its forks",
    ),
    _comm(r"\bEp(?:Dispatch|Combine)\w*Kernel|\bmori::", "expert dispatch and combine of MORI"),
    _comm(r"\ba2a_(?:dispatch|combine)_(?:send|recv)_kernel|\bpplx::", "expert dispatch and combine of pplx"),
    _comm(r"\bmultimem_\w", "PyTorch symmetric memory over multicast (multimem_all_reduce_kernel)"),
    _comm(r"(?:^|[\s:])(?:barrier|put_signal|wait_signal)_kernel$", "PyTorch symmetric memory: peers synchronise"),
    _comm(rf"(?<![a-zA-Z]){_COLLECTIVE}|{_COLLECTIVE_CAMEL}", "named after a collective, by an unknown project"),
    KindRule(Kind.COMPUTE, None, "no other rule matches"),
)

_UNNAMED = "(anonymous namespace)"
_BRACKET = re.compile(r"->|operator(?:<<|>>|<|>|\(\))|[<>(){}]")
_CLOSING = {"<": ">", "(": ")", "{": "}"}


def function_of(name: str) -> str:
    """Return a kernel's qualified function name without return type, template arguments and parameters.

    Examples
    --------
    >>> function_of("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)")
    'anonymous::multimem_all_reduce_kernel'
    >>> function_of("std::enable_if<((8)>(0)), void>::type vllm::rms_norm_kernel<c10::BFloat16>(float)")
    'vllm::rms_norm_kernel'
    >>> function_of("nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT")
    'nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT'
    """
    text = name.strip().replace(_UNNAMED, "anonymous")
    outside = _outside_brackets(text)
    if outside == text:
        return text.removeprefix("void ").strip()
    words = outside.split()
    return words[-1] if words else ""


def _outside_brackets(text: str) -> str:
    """Return what stands in no brackets, up to the parameters; brackets may be left open where a name was cut short."""
    kept: list[str] = []
    open_: list[str] = []
    at = 0
    for found in _BRACKET.finditer(text):
        if not open_:
            kept.append(text[at : found.start()])
            if found[0] == "(" and not kept[-1].endswith("decltype"):
                return "".join(kept)
            if found[0] not in _CLOSING:
                kept.append(found[0])
        _nest(open_, found[0])
        at = found.end()
    return "".join(kept) + ("" if open_ else text[at:])


def _nest(open_: list[str], bracket: str) -> None:
    """Follow what brackets are open; a ``>`` inside parentheses compares and closes nothing."""
    if bracket in _CLOSING:
        open_.append(_CLOSING[bracket])
        return
    if bracket in {")", "}"}:
        while open_ and open_[-1] == ">":
            open_.pop()
    if open_ and open_[-1] == bracket:
        open_.pop()


def classify(name: str, op_type: OpType, has_collective: bool) -> int:  # noqa: FBT001  (a fact about the row, not a mode)
    """Return the index in `RULES` of the first rule that matches; the last one always does.

    Parameters
    ----------
    name
        Kernel or copy name as written.
    op_type
        What the row is by its category.
    has_collective
        Whether the row carries a collective's metadata.

    Examples
    --------
    >>> RULES[classify("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", OpType.KERNEL, False)].kind.name
    'COMM'
    >>> RULES[classify("void at::native::reduce_kernel<512, 1>(int)", OpType.KERNEL, False)].reason
    'no other rule matches'
    """
    whole = demangled(name)
    function = function_of(whole)
    return next(
        index
        for index, rule in enumerate(RULES)
        if rule.matches(whole, function, op_type, has_collective=has_collective)
    )

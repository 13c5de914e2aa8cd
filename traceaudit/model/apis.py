"""What a host API call does: enqueue work, block, wait, capture, allocate; from ordered rules kept as data.

The rules tell causes apart (what the host did while the device was idle) and say which calls should have device ops.
They do not link: a row that shares its correlation with device ops is their launch whatever its name.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

__all__ = ["API_RULES", "ApiRole", "ApiRule", "blocks", "is_graph_launch", "may_block", "role_of"]


class ApiRole(IntEnum):
    """What an API call is for."""

    LAUNCH = 0
    SYNC = 1
    EVENT_RECORD = 2
    STREAM_WAIT = 3
    CAPTURE_BEGIN = 4
    CAPTURE_END = 5
    MEMORY = 6
    OTHER = 7


@dataclass(frozen=True, slots=True)
class ApiRule:
    """Calls of one role.

    Attributes
    ----------
    role
        What the calls are for.
    pattern
        Matches the whole name, without version and stream-mode suffixes.
    reason
        What the calls have in common.
    blocks
        Whether the call returns only when device work is done.
    may_block
        Whether the call may do so, by where its memory lies or how its queue was made; the name cannot tell.
    graph
        Whether the call replays a graph.
    """

    role: ApiRole
    pattern: re.Pattern[str]
    reason: str
    blocks: bool = False
    may_block: bool = False
    graph: bool = False


def _rule(
    role: ApiRole, pattern: str, reason: str, *, blocks: bool = False, may_block: bool = False, graph: bool = False
) -> ApiRule:
    return ApiRule(role, re.compile(pattern), reason, blocks, blocks or may_block, graph)


_RUNTIME = "(?:cuda|hip|musa)"

API_RULES: tuple[ApiRule, ...] = (
    # The host waits for the device.
    _rule(
        ApiRole.SYNC,
        rf"{_RUNTIME}(?:Device|Stream|Event|Thread|Ctx)Synchronize|cu(?:Ctx|Stream|Event)Synchronize",
        "wait of CUDA, HIP or MUSA for a device, stream or event",
        blocks=True,
    ),
    _rule(ApiRole.SYNC, r"ur(?:EventWait|QueueFinish)", "wait of SYCL's unified runtime", blocks=True),
    _rule(ApiRole.SYNC, r"ze(?:CommandQueue|Fence)Synchronize|ze\w+HostSynchronize", "wait of Level Zero", blocks=True),
    _rule(ApiRole.SYNC, r"aclrtSynchronize\w+", "wait of CANN", blocks=True),
    # Replays of a graph.
    _rule(ApiRole.LAUNCH, rf"(?:{_RUNTIME}|cu)GraphLaunch", "replay of a graph", graph=True),
    _rule(ApiRole.LAUNCH, r"ur(?:CommandBufferEnqueue|EnqueueCommandBuffer)\w*", "replay of a SYCL graph", graph=True),
    # Kernels.
    _rule(
        ApiRole.LAUNCH,
        rf"{_RUNTIME}Launch(?:Cooperative)?(?:Kernel)?(?:ExC|MultiDevice)?|{_RUNTIME}LaunchByPtr",
        "kernel launch of a runtime",
    ),
    _rule(
        ApiRole.LAUNCH,
        r"cuLaunch(?:Cooperative)?(?:Kernel|Grid)?(?:Ex|Async|MultiDevice)?",
        "kernel launch of CUDA's driver",
    ),
    _rule(
        ApiRole.LAUNCH,
        r"hip(?:Ext|Hcc)?(?:Module)?Launch(?:Cooperative|Multi)?Kernel(?:MultiDevice)?|hipDrvLaunchKernelEx",
        "kernel launch of HIP",
    ),
    _rule(ApiRole.LAUNCH, r"aclrtLaunchKernel\w*", "kernel launch of CANN"),
    _rule(ApiRole.LAUNCH, r"runFunction - job_prep_and_submit_for_execution", "job submission of MTIA"),
    # Copies and fills. Without "Async" a copy returns when it is done; a fill of device memory does not.
    _rule(
        ApiRole.LAUNCH,
        rf"{_RUNTIME}Memcpy\w*Async|cuMemcpy\w*Async|aclrtMemcpy\w*Async",
        "copy, asynchronous; of pageable memory it waits",
        may_block=True,
    ),
    _rule(
        ApiRole.LAUNCH,
        r"hipMemcpyWithStream",
        "copy of HIP that synchronises its stream before it returns",
        blocks=True,
    ),
    _rule(ApiRole.LAUNCH, rf"{_RUNTIME}Memcpy\w*|cuMemcpy\w*|aclrtMemcpy\w*", "copy, synchronous", blocks=True),
    _rule(ApiRole.LAUNCH, rf"{_RUNTIME}Memset\w*|cuMemset\w*|aclrtMemset\w*", "fill"),
    # SYCL and Level Zero: waits in a queue come before what a queue executes.
    _rule(ApiRole.STREAM_WAIT, r"urEnqueueEventsWait\w*|zeCommandListAppend(?:WaitOnEvents|Barrier)", "a queue waits"),
    _rule(
        ApiRole.EVENT_RECORD,
        r"urEnqueueTimestampRecording\w*|zeCommandListAppend(?:SignalEvent|WriteGlobalTimestamp)",
        "event",
    ),
    _rule(
        ApiRole.LAUNCH,
        r"urEnqueue(?:USMMemcpy|MemBuffer(?:Read|Write)|MemImage(?:Read|Write))\w*|zeCommandListAppendMemoryCopy\w*",
        "copy of SYCL's unified runtime or Level Zero, which waits if asked to",
        may_block=True,
    ),
    _rule(
        ApiRole.LAUNCH, r"urEnqueue\w+|zeCommandListAppend\w+", "enqueuing call of SYCL's unified runtime or Level Zero"
    ),
    # Order between streams.
    _rule(ApiRole.EVENT_RECORD, rf"(?:{_RUNTIME}|cu)EventRecord(?:WithFlags)?|aclrtRecordEvent", "event record"),
    _rule(
        ApiRole.STREAM_WAIT, rf"(?:{_RUNTIME}|cu)StreamWait(?:Event|Value\d*)|aclrtStreamWaitEvent", "a stream waits"
    ),
    # Graph capture.
    _rule(ApiRole.CAPTURE_BEGIN, rf"(?:{_RUNTIME}|cu)StreamBeginCapture(?:ToGraph)?", "begin of a graph capture"),
    _rule(ApiRole.CAPTURE_END, rf"(?:{_RUNTIME}|cu)StreamEndCapture", "end of a graph capture"),
    # Memory. cudaFree and its kin drain the device as a side effect; they stay here, where their cause is.
    _rule(
        ApiRole.MEMORY,
        rf"{_RUNTIME}(?:Malloc|Free|ExtMalloc|Host(?:Alloc|Malloc|Free|Register|Unregister)|Ipc\w*MemHandle)\w*",
        "allocation, release or registration by a runtime",
    ),
    _rule(
        ApiRole.MEMORY,
        rf"(?:{_RUNTIME}|cu)Mem(?:Alloc|Free|Create|Map|Unmap|Release|SetAccess|Address|Pool|Host|Export|Import"
        r"|Prefetch|Advise)\w*",
        "allocation, mapping or placement of memory",
    ),
    _rule(
        ApiRole.MEMORY, r"ur(?:USM|VirtualMem|PhysicalMem)\w+|zeMem(?:Alloc|Free)\w*|zeVirtualMem\w+", "memory of SYCL"
    ),
    _rule(ApiRole.MEMORY, r"aclrt(?:Malloc|Free)\w*", "memory of CANN"),
    _rule(ApiRole.OTHER, r"(?s:.*)", "queries, attributes, handles, unknown names"),
)

_SUFFIX = re.compile(r"(?:_v\d+|_ptsz|_ptds|_spt)+$")


@lru_cache(maxsize=4096)
def _decide(name: str) -> ApiRule:
    bare = _SUFFIX.sub("", name)
    return next(rule for rule in API_RULES if rule.pattern.fullmatch(bare))


def role_of(name: str) -> ApiRole:
    """Return what the API call `name` is for; unknown names are `ApiRole.OTHER`.

    Suffixes of versions and stream modes (``_v11060``, ``_v2``, ``_ptsz``, ``_ptds``, ``_spt``) do not matter.

    Examples
    --------
    >>> role_of("cudaLaunchKernelExC_v11060").name, role_of("cudaStreamWaitEvent").name, role_of("cudaEventQuery").name
    ('LAUNCH', 'STREAM_WAIT', 'OTHER')
    """
    return _decide(name).role


def blocks(name: str) -> bool:
    """Return whether the call returns only when device work is done: waits and synchronous copies.

    An asynchronous copy from or to pageable memory may block as well (`may_block`).

    Examples
    --------
    >>> blocks("cudaStreamSynchronize"), blocks("hipMemcpyWithStream"), blocks("cudaMemcpyAsync")
    (True, True, False)
    """
    return _decide(name).blocks


def may_block(name: str) -> bool:
    """Return whether the call may return only when device work is done: its name cannot tell, its duration does.

    Examples
    --------
    >>> may_block("cudaMemcpyAsync"), may_block("cudaStreamSynchronize"), may_block("cudaLaunchKernel")
    (True, True, False)
    """
    return _decide(name).may_block


def is_graph_launch(name: str) -> bool:
    """Return whether the call replays a graph.

    Examples
    --------
    >>> is_graph_launch("cudaGraphLaunch_v10000"), is_graph_launch("cudaGraphUpload")
    (True, False)
    """
    return _decide(name).graph

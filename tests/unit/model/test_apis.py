"""API names of every backend, and their roles."""

import pytest

from traceaudit.model.apis import API_RULES, ApiRole, blocks, is_graph_launch, role_of

ROLES = {
    ApiRole.LAUNCH: """
        cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel
        cudaLaunchCooperativeKernelMultiDevice cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel
        cudaLaunch cudaGraphLaunch cuGraphLaunch hipGraphLaunch cudaMemcpy cudaMemcpyAsync cudaMemcpy2DAsync
        cudaMemcpyPeerAsync cudaMemcpyToSymbol cuMemcpyHtoDAsync_v2 cudaMemset cudaMemsetAsync
        cuMemsetD8Async hipLaunchKernel hipExtLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel
        hipHccModuleLaunchKernel hipLaunchCooperativeKernel hipModuleLaunchCooperativeKernel
        hipDrvLaunchKernelEx hipLaunchByPtr hipMemcpyWithStream hipMemcpyAsync hipMemcpyDtoH hipMemsetAsync
        hipMemsetD32 urEnqueueKernelLaunch urEnqueueKernelLaunchWithArgsExp urEnqueueUSMMemcpy
        urEnqueueUSMFill zeCommandListAppendLaunchKernel zeCommandListAppendMemoryCopy
        urCommandBufferEnqueueExp musaLaunchKernel aclrtLaunchKernel aclrtMemcpyAsync cudaMemcpyAsync_v3020
        cudaLaunchKernel_ptsz hipLaunchKernel_spt cudaMemcpyAsync_v11060_ptsz
    """,
    ApiRole.SYNC: """
        cudaDeviceSynchronize cudaStreamSynchronize cudaStreamSynchronize_ptsz cudaEventSynchronize
        cudaThreadSynchronize cuCtxSynchronize cuStreamSynchronize cuEventSynchronize hipDeviceSynchronize
        hipStreamSynchronize hipEventSynchronize hipCtxSynchronize urEventWait urQueueFinish
        zeCommandQueueSynchronize zeCommandListHostSynchronize zeEventHostSynchronize zeFenceHostSynchronize
        aclrtSynchronizeStream
    """,
    ApiRole.EVENT_RECORD: """
        cudaEventRecord cudaEventRecordWithFlags cuEventRecord hipEventRecord zeCommandListAppendSignalEvent
    """,
    ApiRole.STREAM_WAIT: """
        cudaStreamWaitEvent cuStreamWaitEvent hipStreamWaitEvent cuStreamWaitValue32 urEnqueueEventsWait
        urEnqueueEventsWaitWithBarrier zeCommandListAppendBarrier
    """,
    ApiRole.CAPTURE_BEGIN: """
        cudaStreamBeginCapture cudaStreamBeginCaptureToGraph hipStreamBeginCapture cuStreamBeginCapture_v2
    """,
    ApiRole.CAPTURE_END: """
        cudaStreamEndCapture hipStreamEndCapture
    """,
    ApiRole.MEMORY: """
        cudaMalloc cudaMallocAsync cudaMallocHost cudaFree cudaFreeHost cudaFreeAsync cudaHostAlloc
        cudaHostRegister cudaHostUnregister hipMalloc hipFree hipHostMalloc hipHostFree
        hipExtMallocWithFlags cuMemAlloc_v2 cuMemCreate cuMemMap cuMemUnmap cuMemRelease cuMemSetAccess
        cuMemAddressReserve cudaMemPoolTrimTo cudaIpcOpenMemHandle cudaMemPrefetchAsync urUSMDeviceAlloc
        zeMemAllocDevice
    """,
    ApiRole.OTHER: """
        cudaEventQuery cudaStreamQuery cudaStreamIsCapturing cudaStreamGetCaptureInfo_v2
        cudaFuncGetAttributes cudaFuncSetAttribute cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        cudaDeviceGetAttribute cudaGetDeviceProperties hipGetDevicePropertiesR0600 cudaMemGetInfo
        cudaPointerGetAttributes cudaEventElapsedTime cudaGraphInstantiate cudaGraphUpload
        cudaLaunchHostFunc cudaDriverGetVersion cudaPeekAtLastError INVALID hipEventDestroy
        myCudaLaunchKernel
    """,
}


@pytest.mark.parametrize(("role", "name"), [(role, name) for role, names in ROLES.items() for name in names.split()])
def test_roles(role: ApiRole, name: str) -> None:
    assert role_of(name) is role


def test_names_with_blanks_and_none_at_all() -> None:
    assert role_of("runFunction - job_prep_and_submit_for_execution") is ApiRole.LAUNCH
    assert role_of("") is ApiRole.OTHER
    assert role_of("two\nlines") is ApiRole.OTHER


@pytest.mark.parametrize("name", ROLES[ApiRole.SYNC].split())
def test_every_wait_blocks(name: str) -> None:
    assert blocks(name)


@pytest.mark.parametrize(
    "name", ["cudaMemcpy", "cudaMemcpy2D", "cuMemcpyDtoH_v2", "hipMemcpy", "hipMemcpyWithStream", "aclrtMemcpy"]
)
def test_synchronous_copies_enqueue_and_block(name: str) -> None:
    assert role_of(name) is ApiRole.LAUNCH
    assert blocks(name)


@pytest.mark.parametrize(
    "name",
    [
        "cudaMemcpyAsync",
        "cuMemcpyDtoHAsync_v2",
        "hipMemcpyAsync",
        "cudaMemset",
        "cudaStreamWaitEvent",
        "cudaFree",
        "cudaEventQuery",
    ],
)
def test_what_does_not_block(name: str) -> None:
    assert not blocks(name)


@pytest.mark.parametrize(
    "name", ["cudaGraphLaunch", "cudaGraphLaunch_v10000", "cuGraphLaunch", "hipGraphLaunch", "cudaGraphLaunch_ptsz"]
)
def test_graph_launches(name: str) -> None:
    assert is_graph_launch(name)


@pytest.mark.parametrize("name", ["cudaLaunchKernel", "cudaGraphUpload", "cudaGraphInstantiate", "hipGraphLaunchx"])
def test_what_is_no_graph_launch(name: str) -> None:
    assert not is_graph_launch(name)


def test_each_rule_says_why() -> None:
    assert all(rule.reason for rule in API_RULES)

"""Kernel names from real traces and sources, and what they must come out as."""

import pytest

from traceaudit.model.kinds import RULES, classify, function_of
from traceaudit.model.schema import Kind, OpType


def kind_of(name: str, op_type: OpType = OpType.KERNEL, *, has_collective: bool = False) -> Kind:
    return RULES[classify(name, op_type, has_collective)].kind


COMM = [
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32(ncclSymkDevWorkArgs4K)",
    "_Z54ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_f8e4m321ncclSymkDevWorkArgs4K",
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
    "void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)",
    "mscclKernel_Sum_hip_bfloat16_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)",
    "void mscclpp::allreduce7<__half>(mscclpp::DeviceHandle<mscclpp::MemoryChannel>*)",
    "void tvm::runtime::allreduce_simple<__half>(mscclpp::SmChannelDeviceHandle*, __half const*)",
    "void tvm::runtime::simple<__half>(mscclpp::SmChannelDeviceHandle*, __half const*)",
    "void allreduce_LL_1node<__half>(int)",
    "hcom_allReduce__503_0_1",
    "hccl::all_reduce",
    "oneccl_allreduce_pcie",
    "void nvshmemi_transfer_rma_nbi<1>(void*)",
    "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, vllm::Signal*)",
    "void sglang::cross_device_reduce_2stage<__half, 8>(sglang::RankData*, sglang::RankSignals)",
    "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8, false>(aiter::RankData*)",
    "_ZN4vllm26cross_device_reduce_1stageI13__nv_bfloat16Li8EEEvPNS_8RankDataE",
    "void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)",
    "void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 4>, true>, __half>(int)",
    "void tensorrt_llm::oneShotAllReduceKernel<__half, (int)8>(tensorrt_llm::AllReduceParams)",
    "void tensorrt_llm::twoShotAllReduceKernel<__half, (int)8>(tensorrt_llm::AllReduceParams)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(Pattern)1, __nv_bfloat16>(int)",
    "void moereduce_allreduce_fusion_kernel_oneshot_lamport<__nv_bfloat16, 8, true, true, false>(int)",
    "void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<8, __nv_bfloat16>(int)",
    "void tensorrt_llm::kernels::mnnvl::rmsNormLamport<2, 7168, __nv_bfloat16>(int)",
    "void userbuffers_fp16_sum_inplace_gpu_mc<4>(int, int, int, int*, int*, uint4*)",
    "void tensorrt_llm::kernels::moe_comm::moeAllToAllKernel<true>(int)",
    "void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<BlockPolicy, 8>(int const*)",
    "void moeA2ACombineKernel<__nv_bfloat16, 8>(int)",
    "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*, int*)",
    "void deep_ep::intranode::cached_notify_combine<8>(void**, int*)",
    "void uccl::internode_ll::combine<10, 7168>(void*)",
    "EpDispatchIntraNodeKernel_bf16",
    "void mori::moe::EpCombineIntraNodeKernel<__hip_bfloat16>(int)",
    "void a2a_dispatch_send_kernel<true, 16>(unsigned long)",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
    "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(c10::BFloat16**)",
    "(anonymous namespace)::barrier_kernel(unsigned int**, unsigned long, unsigned long)",
    "void aiter::allgather_naive<__half, 8>(aiter::RankData*)",
    "my_triton_all_gather_kernel",
    "CustomReduceScatterKernel",
]

COMPUTE = [
    "nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT",
    "hipblaslt_gemm_kernel",
    "void hip_rms_norm_kernel<__hip_bfloat16>(int)",
    "ampere_bf16_s16816gemm_bf16_128x64_ldmatrix_stages_64x3_tn",
    "void cudnn::SyncBatchNormForwardKernel<float>(float*)",
    "void at::native::batch_norm_reduce_statistics_kernel<float>(SyncBatchNormParams)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >(int)",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float>(cublasLt::cublasSplitKParams<float>)",
    "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*> >(long*)",
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::MemcpyFunctor> >(int)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)",
    "_combined_routing_memset",
    "_copy_page_indices_kernel",
    "void at::native::_scatter_gather_elementwise_kernel<128, 4>(int)",
    "void at::native::elementwise_kernel_manual_unroll<128, 4, type_specialized_broadcast_kernel>(int)",
    "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128> >(Flash_fwd_params)",
    "void (anonymous namespace)::groupnorm_kernel_dispatch_up<__hip_bfloat16, 1024u>(unsigned int)",
    "void tensorrt_llm::kernels::finalizeMoeRoutingKernel<__nv_bfloat16>(int)",
    "void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>(int)",
    "void flashinfer::BatchDecodeWithPagedKVCacheKernel<2, ncclFake<int> >(int)",
    "void aiter::local_device_load_rmsnorm<__hip_bfloat16>(int)",
    "triton_poi_fused_all_reduce_0",
    "triton_red_fused_all_gather_into_tensor_wait_tensor_3",
    "gemm_all_gather_kernel",
    "_matmul_reduce_scatter_kernel",
    "void cutlass::device_kernel<GemmAllReduceUniversal<float> >(int)",
    "void block_all_reduce_sum_f32<256>(float*)",
    "void warpAllReduceKernel<float>(float*)",
    "void smallReduceKernel<float>(float*)",
    "small_reduce",
    "overall_reduce_kernel",
    "",
]


@pytest.mark.parametrize("name", COMM)
def test_communication_kernels(name: str) -> None:
    assert kind_of(name) is Kind.COMM


@pytest.mark.parametrize("name", COMPUTE)
def test_names_that_must_not_be_mistaken(name: str) -> None:
    assert kind_of(name) is Kind.COMPUTE


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("__amd_rocclr_copyBuffer", Kind.MEMCPY),
        ("__amd_rocclr_copyBufferAligned.kd", Kind.MEMCPY),
        ("copyBufferRect", Kind.MEMCPY),
        ("CopyDeviceToDevice", Kind.MEMCPY),
        ("MEMORY_COPY_DEVICE_TO_HOST", Kind.MEMCPY),
        ("Memcpy", Kind.MEMCPY),
        ("Memcpy DtoH (Device -> Pinned)", Kind.MEMCPY),
        ("__amd_rocclr_fillBufferAligned.kd", Kind.MEMSET),
        ("fillBufferUnAligned", Kind.MEMSET),
        ("FillBufferAligned", Kind.MEMSET),
        ("Memset (Device)", Kind.MEMSET),
        ("__amd_rocclr_initHeap", Kind.COMPUTE),
        ("MemcpyLikeKernel", Kind.COMPUTE),
        ("CopyDeviceToDeviceTransposed", Kind.COMPUTE),
    ],
)
def test_copies_and_fills_booked_as_kernels(name: str, kind: Kind) -> None:
    assert kind_of(name) is kind


@pytest.mark.parametrize("name", ["ncclDevKernel_AllReduce", "nvjet_tst", "Memcpy PtoP (Device -> Device)"])
@pytest.mark.parametrize(("op_type", "kind"), [(OpType.MEMCPY, Kind.MEMCPY), (OpType.MEMSET, Kind.MEMSET)])
def test_category_of_copies_decides_before_names_and_metadata(name: str, op_type: OpType, kind: Kind) -> None:
    assert kind_of(name, op_type) is kind
    assert kind_of(name, op_type, has_collective=True) is kind


def test_metadata_of_a_collective_decides_before_names() -> None:
    assert kind_of("nvjet_tst") is Kind.COMPUTE
    rule = RULES[classify("nvjet_tst", OpType.KERNEL, has_collective=True)]
    assert (rule.kind, rule.needs_collective) == (Kind.COMM, True)


def test_rules_are_total_and_each_says_why() -> None:
    assert RULES[-1].kind is Kind.COMPUTE
    assert RULES[-1].pattern is None
    assert classify("anything", OpType.KERNEL, has_collective=False) == len(RULES) - 1
    assert all(rule.reason for rule in RULES)


def test_every_name_rule_is_reached_by_some_name() -> None:
    extra = ["gloo::cuda_reduce", "__amd_rocclr_copyBuffer", "__amd_rocclr_fillBuffer", "CopyDeviceToHost"]
    extra += ["Memcpy", "Memset", "quickreduce::x"]
    reached = {classify(name, OpType.KERNEL, has_collective=False) for name in [*COMM, *COMPUTE, *extra]}
    by_name = {i for i, rule in enumerate(RULES) if rule.pattern is not None or rule.op_type is None}
    assert reached == by_name


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("void a::b<c<d>, (e)1>(f<g>)", "a::b"),
        ("a::(anonymous namespace)::b(int)", "a::anonymous::b"),
        ("std::enable_if<!(x), void>::type a::b<int>(int)", "a::b"),
        (
            "std::enable_if<(((8)>(0)))&&v::_c<c10::BFloat16>::exists, void>::type v::norm<c10::BFloat16, 8>(int)",
            "v::norm",
        ),
        ("decltype(nullptr) a::b<(c->d), 1>(int)", "a::b"),
        ("unsigned int a::b(int)", "a::b"),
        ("void a::b<(c)>(2)", "a::b"),
        ("void a::b<c::{lambda(int)#1}, d>(e)", "a::b"),
        ("plain with blanks", "plain with blanks"),
        ("void a::b<c<d, e(f)", "a::b"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_function_without_templates_and_parameters(name: str, function: str) -> None:
    assert function_of(name) == function

"""Activations by name, place and grid, for 16 tokens of a model with 16 + 4 heads of 128 and an FFN of 5632."""

import pytest

from traceaudit.model.bytes.activations import Place, Sizes, activation
from traceaudit.model.bytes.expansion import expanded_elements, parts_copied
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.bytes.rolework import RoleWork
from traceaudit.model.bytes.split import is_helper
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.workload import Parallelism, Workload

PLAIN = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
MUL = (
    PLAIN
    + "BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > > >"
)
VECTOR = "void at::native::vectorized_elementwise_kernel<"
ADD = VECTOR + "8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)"
LONGS = VECTOR + "2, at::native::FillFunctor<long>, std::array<char*, 1ul> >(int)"
SMALL_INDEX = (
    "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2, -2>(int)"
)

QKV, END = Place(attending=True), Place(ending=True)


def model(**changes):
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 2,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 5632,
        "vocab_size": 32000,
    }
    return architecture(config | changes, name="small")


ELSEWHERE = Place()
FULL = Workload((2048,) * 16)


def moved(name, blocks, place=ELSEWHERE, workload=FULL):
    made = model()
    roles, sizes = RoleWork(made, workload), Sizes(made, workload)
    work = activation(kernel_class(name), name, blocks, 128, place, roles, sizes)
    return None if work is None else (work.read_bytes, work.write_bytes)


HEADS = 16 * 20 * 128 * 2


def test_before_attention_heads_are_multiplied_by_a_row_of_each_token():
    assert moved(MUL, 80, place=QKV) == (HEADS + 16 * 128 * 2, HEADS)


def test_elsewhere_both_operands_are_as_large_as_the_result():
    assert moved(MUL, 176) == (2 * 16 * 5632 * 2, 16 * 5632 * 2)
    assert moved(ADD, 32) == (2 * 65536, 65536)


def test_a_size_of_the_model_decides_within_the_last_block():
    """3 requests have 6144 states in 6 blocks of 1024, and 16896 between gate and up in 16.5."""
    load = Workload((64,) * 3)
    assert moved(ADD, 6, workload=load) == (2 * 12288, 12288)
    assert moved(ADD, 17, workload=load) == (2 * 33792, 33792)
    assert moved(ADD, 20, workload=load) == (2 * 40960, 40960)  # none fits: up to the last block


@pytest.mark.parametrize(("name", "blocks"), [(LONGS, 1), (ADD, 1), (ADD, 5)])
def test_a_few_blocks_of_no_known_size_tell_nothing(name, blocks):
    assert moved(name, blocks) is None


def test_norms_read_their_weight_and_may_add_the_residual():
    state = 16 * 2048 * 2
    assert moved("vllm::rms_norm_kernel<c10::BFloat16>", 16) == (state + 4096, state)
    assert moved("vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", 16) == (2 * state + 4096, 2 * state)
    assert moved("rms_norm_kernel", 16 * 4) == (16 * 4 * 128 * 2 + 256, 16 * 4 * 128 * 2)  # a block for each key head


def test_without_a_grid_a_norm_before_attention_may_be_of_queries_or_of_keys():
    assert moved("rms_norm_kernel", 0, place=QKV) is None
    assert moved("rms_norm_kernel", 0) == (16 * 2048 * 2 + 4096, 16 * 2048 * 2)


def test_a_gather_must_reach_a_whole_row():
    assert moved(SMALL_INDEX, 16) == (65536, 65536)
    assert moved(SMALL_INDEX, 1) is None  # 128 threads: a row of a rotary table
    assert moved(SMALL_INDEX, 0) == (65536, 65536)  # no grid in the trace: nothing speaks against it


def test_sampling_follows_the_head():
    logits = 16 * 32000 * 2
    assert moved("argmax_kernel", 16, place=END) == (logits, 0)
    assert moved("softmax_warp_forward", 16, place=END) == (logits, logits)
    assert moved("topk_softmax", 16) is None  # a router's


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("triton_poi_fused_mul_silu_split_4", KernelClass.ACTIVATION),
        ("triton_red_fused__fused_rms_norm_0", KernelClass.NORM),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_14", KernelClass.OTHER),  # may add a residual
        ("triton_poi_fused_add_cat_index_copy_mul_neg_slice_1", KernelClass.OTHER),
        ("triton_poi_fused__scaled_dot_product_cudnn_attention_clone_expand_transpose_6", KernelClass.OTHER),
        ("triton_red_fused_embedding_mean_mul_pow_rsqrt_0", KernelClass.OTHER),
        ("triton_tem_fused_mm_3", KernelClass.GEMM),
    ],
)
def test_generated_kernels_have_a_class_where_all_that_they_fuse_serves_it(name, kind):
    assert kernel_class(name) is kind
    assert not is_helper(name)


def test_copies_of_keys_show_by_their_grid():
    layer, load = model().layers[0], Workload((1025,) * 8)
    elements = expanded_elements(layer, load)
    assert elements == 8 * 1025 * 16 * 128
    copy = PLAIN + "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}> >"
    assert parts_copied("triton_poi_fused_clone_6", 16400, 128, elements) == 1
    assert parts_copied("triton_poi_fused_clone_6", 32800, 128, 2 * elements) == 1
    assert parts_copied("triton_poi_fused_clone_6", 16401, 128, elements) == 0
    assert parts_copied(copy, 32800, 128, elements) == 1
    assert parts_copied(copy, 65600, 128, elements) == 2  # keys and values at once
    assert parts_copied(ADD, 16400, 128, elements) == 0  # two inputs: no copy
    assert parts_copied("triton_poi_fused_clone_6", 128, 128, 128 * 1024) == 0  # so few blocks may be chance


def test_nothing_is_expanded_without_groups():
    assert expanded_elements(model(num_key_value_heads=16).layers[0], Workload((64,))) == 0
    assert expanded_elements(model().layers[0], Workload((64,), parallelism=Parallelism(tp=16))) == 0


def test_attention_reads_the_copies():
    works = RoleWork(model(), Workload((1025,) * 8))
    cache, states = 2 * 8 * 1025 * 4 * 128 * 2, 8 * 2048 * 2
    assert works.of("attention", 0).read_bytes == cache + states
    assert works.of("attention", 0, copied=1).read_bytes == cache // 2 + 4 * cache // 2 + states
    assert works.of("attention", 0, copied=2).read_bytes == 4 * cache + states

"""Bytes and FLOP of single calls, worked out by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.model.bytes.facts import Facts
from traceaudit.model.bytes.operands import DTYPE_BYTES, op_call
from traceaudit.model.bytes.registry import MODELS, has_model, work_of
from traceaudit.model.bytes.work import Family, Source

BF16, HALF, FLOAT, LONG, FP8 = "c10::BFloat16", "c10::Half", "float", "long int", "c10::Float8_e4m3fn"


NOTHING = Facts()


def call(name, *operands, **extra):
    """A call from (dims, dtype), (dims, dtype, strides) or a scalar."""
    dims, types, strides, values = [], [], [], []
    for operand in operands:
        scalar = not isinstance(operand, tuple)
        dims.append([] if scalar else operand[0])
        types.append("Scalar" if scalar else operand[1])
        strides.append([] if scalar or len(operand) < 3 else operand[2])
        values.append(str(operand) if scalar else "")
    detail = {"Input Dims": dims, "Input type": types, "Concrete Inputs": values, **extra}
    if any(strides):
        detail["Input Strides"] = strides
    return op_call(name, json.dumps(detail).encode())


def moved(made, facts=NOTHING):
    work = work_of(made, facts)
    return work.read_bytes, work.write_bytes, work.flop


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # 16x2048 @ 2048x3072, bf16
        (
            call("aten::mm", ([16, 2048], BF16), ([2048, 3072], BF16)),
            (16 * 2048 * 2 + 2048 * 3072 * 2, 16 * 3072 * 2, 2 * 16 * 2048 * 3072),
        ),
        (
            call("aten::addmm", ([512], HALF), ([8, 256], HALF), ([256, 512], HALF), 1, 1),
            (512 * 2 + 8 * 256 * 2 + 256 * 512 * 2, 8 * 512 * 2, 2 * 8 * 256 * 512),
        ),
        (
            call("aten::bmm", ([64, 16, 4096], BF16), ([64, 4096, 512], BF16)),
            (64 * (16 * 4096 + 4096 * 512) * 2, 64 * 16 * 512 * 2, 2 * 64 * 16 * 4096 * 512),
        ),
        (
            call("aten::linear", ([2, 8, 64], FLOAT), ([32, 64], FLOAT), ([32], FLOAT)),
            ((16 * 64 + 32 * 64 + 32) * 4, 16 * 32 * 4, 2 * 16 * 64 * 32),
        ),
        # fp8 with two scales, result bf16 (torch's type 15)
        (
            call(
                "aten::_scaled_mm",
                ([16, 8192], FP8),
                ([8192, 28672], FP8),
                ([], FLOAT),
                ([], FLOAT),
                "",
                "",
                15,
                "False",
            ),
            (16 * 8192 + 8192 * 28672 + 8, 16 * 28672 * 2, 2 * 16 * 8192 * 28672),
        ),
        # nibbles in int32, a scale and a zero for each group of 128
        (
            call(
                "aten::_weight_int4pack_mm", ([16, 8192], BF16), ([3584, 64, 32, 4], "int"), 128, ([64, 28672, 2], BF16)
            ),
            (16 * 8192 * 2 + 28672 * 8192 // 2 + 64 * 28672 * 2 * 2, 16 * 28672 * 2, 2 * 16 * 8192 * 28672),
        ),
        (
            call("aten::_weight_int8pack_mm", ([16, 8192], BF16), ([28672, 8192], "signed char"), ([28672], BF16)),
            (16 * 8192 * 2 + 28672 * 8192 + 28672 * 2, 16 * 28672 * 2, 2 * 16 * 8192 * 28672),
        ),
        # vLLM: the result comes first
        (
            call(
                "_C::cutlass_scaled_mm",
                ([8, 512], BF16),
                ([8, 256], FP8),
                ([256, 512], FP8),
                ([8, 1], FLOAT),
                ([512], FLOAT),
            ),
            (8 * 256 + 256 * 512 + 8 * 4 + 512 * 4, 8 * 512 * 2, 2 * 8 * 256 * 512),
        ),
        # 16 requests, 16 query heads on 4 KV heads, 2048 cached tokens
        (
            call(
                "aten::_cudnn_attention_forward",
                ([16, 16, 1, 128], BF16),
                ([16, 4, 2048, 128], BF16),
                ([16, 4, 2048, 128], BF16),
                *("", "", "", 1, 2048, "False", 0.0, "False", "False", ""),
            ),
            (
                16 * 16 * 128 * 2 + 2 * 16 * 4 * 2048 * 128 * 2,
                16 * 16 * 128 * 2,
                4 * 16 * 16 * 2048 * 128,
            ),
        ),
        # causal: each query sees the keys up to its own
        (
            call("aten::_scaled_dot_product_flash_attention", *[([1, 2, 4, 8], HALF)] * 3, 0.0, "True"),
            (3 * 64 * 2, 64 * 2, 2 * 2 * (4 + 3 + 2 + 1) * 16),
        ),
        # heads before the last dim
        (
            call("aten::_flash_attention_forward", ([2, 1, 8, 64], HALF), *[([2, 100, 2, 64], HALF)] * 2),
            (2 * 8 * 64 * 2 + 2 * 2 * 100 * 2 * 64 * 2, 2 * 8 * 64 * 2, 2 * 2 * 8 * 100 * 128),
        ),
        (call("aten::add", ([64], FLOAT), ([64], FLOAT), 1), (512, 256, None)),
        # broadcast: the row is read once
        (call("aten::mul", ([16, 128], BF16), ([1, 128], BF16)), (16 * 128 * 2 + 256, 16 * 128 * 2, None)),
        # a third tensor is the place of the result
        (call("aten::add", ([64], FLOAT), ([64], FLOAT), 3.0, ([64], FLOAT)), (512, 256, None)),
        (call("aten::gt", ([64], FLOAT), 0), (256, 64, None)),
        (call("aten::add_", ([1], LONG), 1), (8, 8, None)),
        # an expanded operand lies in memory once
        (call("aten::neg", ([8, 100], FLOAT, [1, 0])), (32, 3200, None)),
        (
            call("aten::_fused_rms_norm", ([16, 2048], BF16), "[2048]", ([2048], BF16), 1e-6),
            (65536 + 4096, 65536 + 64, None),
        ),
        (call("aten::_softmax", ([4, 8], BF16), -1, "False"), (64, 64, None)),
        (call("_C::silu_and_mul", ([4, 8], BF16), ([4, 16], BF16)), (128, 64, None)),
        (call("_C::fused_add_rms_norm", ([4, 8], BF16), ([4, 8], BF16), ([8], BF16)), (144, 128, None)),
        (call("aten::copy_", ([8], FLOAT), ([8], BF16), "False"), (16, 32, None)),
        (call("aten::fill_", ([8], FLOAT), 0.5), (0, 32, None)),
        (call("aten::index_select", ([32000, 2048], BF16), 0, ([16], LONG)), (16 * 4096 + 128, 16 * 4096, None)),
        (
            call("aten::gather", ([100, 8], BF16), 0, ([50, 8], LONG, [1, 0]), "False", ([50, 8], BF16)),
            (50 * 8 * 2 + 50 * 8, 800, None),
        ),
        # one new token for each request, not the whole cache
        (
            call("aten::index_copy_", ([16, 4, 2048, 128], BF16), 2, ([1], LONG), ([16, 4, 1, 128], BF16)),
            (16384 + 8, 16384, None),
        ),
        (call("aten::sum", ([64, 32], FLOAT), "[1]", "False"), (8192, 256, None)),
        (call("aten::argmax", ([16, 32000], BF16), -1, "False"), (1024000, 128, None)),
        (call("aten::amax", ([67108864], FLOAT), "[]", "False"), (268435456, 4, None)),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_bytes_and_flop_of_a_call(made, expected):
    assert moved(made) == expected


def test_listed_tensors_take_their_type_from_the_kernel():
    made = op_call("aten::cat", b'{"Input Dims":[[[16,20,1,64],[16,20,1,64]],[]],"Input type":["TensorList","Scalar"]}')
    assert work_of(made, Facts()) is None
    kernel = "CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4>"
    assert moved(made, Facts(kernel=kernel)) == (81920, 81920, None)


def test_experts_that_no_token_chose_are_not_read():
    weights = ([256, 4096, 7168], FP8), ([256, 7168, 2048], FP8)
    chosen = ([32, 8], FLOAT), ([32, 8], "int")
    work = work_of(call("vllm::outplace_fused_experts", ([32, 7168], BF16), *weights, *chosen), Facts())
    expert = 3 * 7168 * 2048
    assert work.family is Family.EXPERTS
    # 256 (1 - (1 - 8/256)^32) = 163.31 experts
    assert work.read_bytes == pytest.approx(163.31 * expert, rel=1e-3)
    assert work.flop == 2 * 32 * 8 * expert
    assert "163.3 of 256 experts" in work.assumption
    one = work_of(call("vllm::outplace_fused_experts", ([1, 7168], BF16), *weights, ([1, 8], FLOAT)), Facts())
    assert one.read_bytes == pytest.approx(8 * expert, rel=1e-3)


def test_a_paged_cache_is_not_read_whole():
    query, cache = ([16, 32, 128], BF16), ([4096, 16, 8, 128], BF16)
    operands = [query, cache, cache, *[""] * 5, ([16, 256], "int"), "", 1, 1000]
    work = work_of(call("_vllm_fa2_C::varlen_fwd", *operands), Facts())
    assert work.read_bytes == 16 * 32 * 128 * 2 + 16 * 1000 * 2 * 8 * 128 * 2
    assert "upper bound" in work.assumption
    told = work_of(call("_vllm_fa2_C::varlen_fwd", *operands), Facts(context=500))
    assert told.read_bytes == 16 * 32 * 128 * 2 + 16 * 500 * 2 * 8 * 128 * 2
    assert work_of(call("_vllm_fa2_C::varlen_fwd", *operands[:-1]), Facts()) is None


def test_the_compiler_speaks_first():
    made = call("triton_poi_fused_mul_0", ([64], FLOAT), 64, kernel_num_gb=0.0021, kernel_flop=1000.0)
    work = work_of(made, Facts())
    assert (work.source, work.moved_bytes, work.flop) == (Source.ANNOTATED, 2_100_000, 1000)
    unsaid = work_of(call("triton_poi_fused_mul_0", ([64], FLOAT), ([64], FLOAT), 64, kernel_num_gb="None"), Facts())
    assert (unsaid.source, unsaid.moved_bytes) == (Source.SHAPE, 512)


def test_a_generated_kernel_touches_no_more_than_it_walks_over():
    made = call("triton_poi_fused_index_copy_1", ([16, 4, 128], BF16), ([16, 4, 2048, 128], BF16), 8192)
    assert moved(made) == (16384, 16384, None)


@pytest.mark.parametrize(
    "operands",
    [
        (([8, 6144], BF16), ([8, 6144], BF16), 49152),  # the result overwrites one of the inputs
        (([8, 12288], BF16), ([8, 6144], BF16), 49152),  # gate and up are halves of one tensor
        (([8, 6144], BF16), ([8, 6144], BF16), ([8, 6144], BF16), 49152),
    ],
)
def test_a_gated_activation_reads_both_of_its_inputs(operands):
    """294,912 bytes, as counters say of this kernel of ours: 2 x 98,304 read and 98,304 written."""
    assert moved(call("triton_poi_fused__unsafe_view_mul_silu_9", *operands)) == (2 * 98304, 98304, None)


def test_what_is_not_known_stays_unknown():
    assert not has_model("mystery::op")
    assert work_of(call("mystery::op", ([8], FLOAT)), Facts()) is None
    cut = op_call("aten::mm", b'{"Input Dims":["...", [8, 8]],"Input type":["float","float"]}')
    assert work_of(cut, Facts()) is None
    assert work_of(op_call("aten::mm", b"no json"), Facts()) is None


_OPERANDS = st.lists(
    st.one_of(
        st.just(""),
        st.integers(-3, 300),
        st.tuples(
            st.lists(st.integers(0, 40), max_size=5), st.sampled_from([*DTYPE_BYTES, "Scalar", "TensorList", ""])
        ),
    ),
    max_size=16,
)


@given(st.sampled_from([*MODELS, "triton_poi_fused_0"]), _OPERANDS, st.integers(0, 100) | st.none())
def test_no_operands_upset_a_model(name, operands, context):
    work = work_of(call(name, *operands), Facts(context=context))
    assert work is None or (work.read_bytes >= 0 and work.write_bytes >= 0 and (work.flop is None or work.flop >= 0))

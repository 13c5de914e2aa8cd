import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.model.shortnames import shortened

names = st.lists(
    st.text("ab_<>:,() 0123", min_size=1, max_size=30)
    | st.from_regex(r"\Avoid at::native::[ab]_kernel<[0-9]{1,2}>\(int\)\Z")
)


@given(names)
def test_different_kernels_never_share_a_short_name(found):
    short = shortened(found)
    assert set(short) == set(found)
    assert len(set(short.values())) == len(set(found))


def test_what_differs_is_kept():
    found = ["void gemm<128, 64, float>(P)", "void gemm<128, 32, float>(P)"]
    assert list(shortened(found).values()) == ["gemm [64]", "gemm [32]"]


def test_the_order_of_the_names_decides_nothing():
    found = ["void gemm<1, 2>(A)", "void gemm<2, 1>(A)", "void gemm<1, 2>(B)"]
    assert shortened(found) == shortened(found[::-1])


def test_words_that_tell_come_before_numbers_and_words_of_every_name():
    copies = [
        (
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::"
            "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
            "{lambda(float)#1}>(at::TensorIteratorBase&)>(int)"
        ),
        (
            "void at::native::elementwise_kernel<128, 8, at::native::gpu_kernel_impl_nocast<at::native::"
            "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
            "{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&)>(int)"
        ),
    ]
    assert list(shortened(copies).values()) == [
        "elementwise_kernel<direct_copy> [float]",
        "elementwise_kernel<direct_copy> [BFloat16]",
    ]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            (
                "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
                "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)"
            ),
            "vllm::fused_add_rms_norm_kernel",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_tn_align1>(P)",
            "cutlass_80_simt_sgemm_128x32_8x5_tn_align1",
        ),
        (
            (
                "_ZN7cutlass13device_kernelIN2at4cuda6detail25enable_3x_kernel_for_sm9xINS_4gemm6kernel13GemmUniversalI"
                "NS5_17GroupProblemShapeIN4cute5tupleIJiiiEEEEENS5_10collective13CollectiveMma"
            ),
            "GemmUniversal<GroupProblemShape>",
        ),
        (
            "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::Mainloop<2>>>>(P)",
            "FlashAttnFwdSm90",
        ),
        (
            (
                "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
                "BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::"
                "MulFunctor<float> > >(int)>"
            ),
            "elementwise_kernel<mul>",
        ),
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, "
                "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)"
            ),
            "vectorized_elementwise_kernel<mul_scalar>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, int>(int)",
            "vectorized_elementwise_kernel<add>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, int>(int)",
            "vectorized_elementwise_kernel<add_scalar>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, int>(int)",
            "vectorized_elementwise_kernel<fill>",
        ),
        (
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256_MI16x16x1_SN_LDSB1",
            "Cijk_Alik_Bljk_BBS_MT16x16x256",
        ),
    ],
)
def test_a_name_says_what_the_kernel_computes(name, short):
    assert shortened([name]) == {name: short}


def test_copies_stay_whole():
    assert (
        shortened(["Memcpy HtoD (Pinned -> Device)"])["Memcpy HtoD (Pinned -> Device)"]
        == "Memcpy HtoD (Pinned -> Device)"
    )

import pytest

from traceaudit.model.bytes.geometry import Walk, walk_of

# Names and grids from our recording of 16 requests with 20 + 4 heads of 128 and an FFN of 5632.
PLAIN = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"


@pytest.mark.parametrize(
    ("name", "blocks", "walk"),
    [
        (PLAIN + "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16> > >", 80, Walk(16 * 20 * 128, 2, 2, 512)),
        (PLAIN + "at::native::(anonymous namespace)::silu_kernel(c10::BFloat16, int)", 176, Walk(16 * 5632, 1, 2, 512)),
        (
            "void at::native::index_elementwise_kernel<128, 4, at::native::index_copy_kernel_impl<OpaqueType<2> >",
            16,
            Walk(16 * 4 * 128, 1, 2, 512),
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>, std::array<char*, 1ul> >",
            2,
            Walk(1024, 0, 4, 512),
        ),
        ("nvjet_sm90_tst_64x8_64x16_4x2_h_bz_TNT", 64, None),
        ("triton_poi_fused_mul_0", 8, None),
    ],
)
def test_grids_tell_the_elements(name, blocks, walk):
    assert walk_of(name, blocks, 128) == walk

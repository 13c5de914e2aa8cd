import pytest

from traceaudit.model.identity import NO_SHAPE, identity_of, shape_class


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("triton_poi_fused_add_mul_3", "triton_poi_fused_add_mul_11"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2"),
        ("_fwd_kernel_0d1d2d3de4de5c", "_fwd_kernel_0d1d2de3de4de5c"),
        ("kernel_cutlass_3fa9c01d77b2", "kernel_cutlass_9b1c22d07e4a"),
        ("_ZN61_GLOBAL__N__6c05b2b8_24_foo_cu_1f2e3d4c7fooEv", "_ZN61_GLOBAL__N__7d15a2c9_24_foo_cu_1f2e3d4c7fooEv"),
        ("f<{lambda()#3}::operator()>", "f<{lambda()#7}::operator()>"),
        ("_gemm_a16_w16.kd", "_gemm_a16_w16"),
        ("call(void*, 0x7f12aa00)", "call(void*, 0x7f99bb10)"),
    ],
)
def test_builds_of_one_kernel_share_an_identity(one, other):
    assert identity_of(one) == identity_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT", "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_mul_0"),
        ("void reduce_kernel<512, 1>(int)", "void reduce_kernel<128, 4>(int)"),
        ("conv_2d", "conv_3d"),
        ("ampere_fp16_s16816gemm_fp16_64x64", "ampere_fp16_s16816gemm_fp16_128x64"),
    ],
)
def test_different_kernels_keep_apart(one, other):
    assert identity_of(one) != identity_of(other)


@pytest.mark.parametrize(
    "name", ["conv_3d", "memcpy32_post", "Memcpy DtoH (Device -> Pinned)", "void f<__nv_bfloat16>(int)"]
)
def test_plain_names_stay(name):
    assert identity_of(name) == name


def test_a_name_of_nothing_but_a_hash_stays():
    assert identity_of("_3fa9c01d77b2") == "_3fa9c01d77b2"


@pytest.mark.parametrize(("size", "expected"), [(1, 0), (127, 6), (128, 7), (255, 7), (0, NO_SHAPE), (-1, NO_SHAPE)])
def test_shapes_have_classes_by_powers_of_two(size, expected):
    assert shape_class(size) == expected

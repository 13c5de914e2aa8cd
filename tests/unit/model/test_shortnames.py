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


def test_copies_stay_whole():
    assert (
        shortened(["Memcpy HtoD (Pinned -> Device)"])["Memcpy HtoD (Pinned -> Device)"]
        == "Memcpy HtoD (Pinned -> Device)"
    )

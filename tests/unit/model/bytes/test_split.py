from hypothesis import given
from hypothesis import strategies as st

from traceaudit.model.bytes.split import share_inputs

kernels = st.lists(
    st.tuples(st.sampled_from(["gemm", "splitKreduce", "fused_moe", "moe_align_block"]), st.integers(0, 10**7)),
    min_size=1,
    max_size=12,
)


@given(st.integers(0, 10**12), kernels)
def test_shares_sum_to_the_op(total, made):
    shares = share_inputs(total, [name for name, _ in made], [time for _, time in made])
    assert sum(shares) == total
    assert min(shares) >= 0


def test_helpers_read_nothing_while_others_work():
    assert share_inputs(90, ["prepare_data", "gemm", "gemm", "combine"], [50, 10, 20, 30]) == [0, 30, 60, 0]
    assert share_inputs(90, ["moe_sum"], [10]) == [90]

"""How many experts a step touches, and what dense and sparse layers weigh."""

import pytest

from traceaudit.model.llm.components import Component
from traceaudit.model.llm.ffn import Dense, Experts, Touched, touched
from traceaudit.model.llm.reading import touched_on_rank
from traceaudit.model.llm.workload import Parallelism


@pytest.mark.parametrize(
    ("experts", "per_token", "tokens", "expected"),
    [
        (256, 6, 1, 6.0), (256, 6, 8, 44.2), (256, 6, 16, 80.8), (256, 6, 32, 136.1), (256, 6, 64, 199.9),
        (256, 6, 128, 243.7),
        (256, 8, 8, 57.4), (256, 8, 16, 102.0), (256, 8, 32, 163.3), (256, 8, 64, 222.4), (256, 8, 128, 251.6),
        (128, 8, 8, 51.6), (128, 8, 16, 82.4), (128, 8, 32, 111.8), (128, 8, 64, 125.9), (128, 8, 128, 128.0),
        (128, 4, 8, 28.7), (128, 4, 16, 51.0), (128, 4, 32, 81.7), (128, 4, 64, 111.2), (128, 4, 128, 125.8),
        (8, 2, 8, 7.2), (8, 2, 16, 7.9), (8, 2, 32, 8.0),
    ],
)  # fmt: skip
def test_expected_unique_experts(experts, per_token, tokens, expected):
    """E (1 - (1 - k/E)^T), e.g. 256 x (1 - (250/256)^16) = 256 x (1 - 0.6842) = 80.8."""
    use = touched(experts, per_token, tokens)
    assert round(use.expected, 1) == expected
    assert use.minimum == per_token <= use.expected <= use.maximum == min(experts, per_token * tokens)


def test_expert_ranks_read_their_share():
    """V3 at batch 16 (102.0 of 256): tp 8 slices each expert by 8; ep 8 holds 32 whole ones, at most 32 touched.

    With dp 8 and ep 8, 128 tokens meet: 251.6 expected, 31.4 a rank.
    """
    v3 = Experts(7168, 256, 8, 2048)
    sliced = touched_on_rank(v3, 16, Parallelism(tp=8))
    assert (sliced.minimum, round(sliced.expected, 3), sliced.maximum) == (1.0, 12.745, 16.0)
    spread = touched_on_rank(v3, 16, Parallelism(tp=8, ep=8))
    assert (spread.minimum, round(spread.expected, 3), spread.maximum) == (1.0, 12.745, 32.0)
    met = touched_on_rank(v3, 16, Parallelism(dp=8, ep=8))
    assert round(met.expected, 2) == 31.45
    both = touched_on_rank(v3, 16, Parallelism(tp=8, ep=2))
    assert round(both.expected, 3) == 12.745


def test_replicas_do_not_meet():
    """dp 4 without expert ranks: four engines, each with its own 16 tokens."""
    assert touched_on_rank(Experts(8, 256, 8, 8), 16, Parallelism(dp=4)).expected == touched(256, 8, 16).expected


def test_dense_and_shared_weights():
    """3 x 8 x 16 = 384, plain 256; router 4 x 8 = 32 whole, shared 3 x 8 x 6 = 144 split."""
    assert Dense(8, 16).weights(2)[0].per_rank == 192
    assert Dense(8, 16, matrices=2).elements == 256
    parts = {part.component: part.per_rank for part in Experts(8, 4, 2, 16, shared_width=6).weights(2)}
    assert parts == {Component.ROUTER: 32, Component.SHARED_EXPERTS: 72}
    assert [part.component for part in Experts(8, 4, 2, 16).weights(2)] == [Component.ROUTER]


def test_scaling():
    assert Touched(1, 2, 3).times(2) == Touched(2, 4, 6)

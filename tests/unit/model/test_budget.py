import pytest
from comparisons import decode, kernel, run, side

from traceaudit.analyses.diff import diff
from traceaudit.model.budget import DEFAULT_LIMITS, Limits, propose


@pytest.mark.parametrize(
    ("limits", "base_us", "allowed_us"),
    [
        (DEFAULT_LIMITS, 412, 8.24),  # 2 %
        (DEFAULT_LIMITS, 2.1, 1.0),  # 1 µs
        (Limits(relative=0.02, absolute_ns=1000, step_frac=0.01), 2.1, 5.0),  # 1 % of 500 µs
        (Limits(relative=0.5), 2, 1.0),
        (Limits(absolute_ns=3000), 1000, 3.0),
        (Limits(), 1000, 0.0),
    ],
)
def test_what_is_allowed_is_the_most_generous_of_the_limits(limits, base_us, allowed_us):
    assert limits.allowed_ns(base_us * 1000, 500_000) == pytest.approx(allowed_us * 1000)


def test_limits_name_those_that_are_set():
    assert DEFAULT_LIMITS.names() == ("relative", "absolute", "step_share")
    assert Limits(relative=0.1).names() == ("relative",)


def test_a_proposal_bounds_what_matters_a_tenth_above_what_was_measured():
    kernels = (kernel("large<a>(int)", 100), kernel("triton_poi_fused_add_3", 90), kernel("small", 1))
    one = side(run(*kernels))
    budget = propose(diff(one, one))
    assert [(rule.match.pattern, rule.max_ns, rule.max_launches) for rule in budget.kernels] == [
        (r"^large<a>\(int\)$", pytest.approx(110_000), 1),
        (r"^triton_poi_fused_add", pytest.approx(99_000), 1),
    ]
    assert budget.measures[0].max_ns == pytest.approx(211_000)  # 1.1 x 191 = 210.1, rounded up to three digits
    assert budget.launches[0].increase == 0
    assert budget.unaccounted[0].max_frac == 0.02


def test_kernels_that_one_pattern_finds_share_a_rule():
    """Two numbered kernels and two shapes: each pattern once, with what all that it finds take together."""
    numbered = [kernel(f"triton_poi_fused_add_{number}", 90, place=number) for number in (1, 2)]
    one = side(run(*numbered, kernel("copy", 40, blocks=64), kernel("copy", 60, blocks=512)))
    assert [(rule.match.pattern, rule.max_ns, rule.max_launches) for rule in propose(diff(one, one)).kernels] == [
        ("^triton_poi_fused_add", pytest.approx(198_000), 2),
        ("^copy$", pytest.approx(110_000), 2),
    ]


def test_a_proposal_leaves_room_for_what_is_unaccounted_already():
    one = side(decode(wall_us=(1000,)))  # 832 µs of window
    assert propose(diff(one, one)).unaccounted[0].max_frac == pytest.approx(0.34)


def test_a_side_without_time_has_bounds_of_nothing():
    idle = side(run(kernel("nothing", 0)))
    assert propose(diff(idle, idle)).measures[0].max_ns == 0

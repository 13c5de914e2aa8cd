"""Laws of `diff` and `check` that hold for any two sides."""

from dataclasses import replace

from comparisons import kernel, run, side
from hypothesis import given, settings
from hypothesis import strategies as st

from traceaudit.analyses.diff import diff
from traceaudit.analyses.gate import judge
from traceaudit.model.budget import Budget, Limits
from traceaudit.model.results.diff import Outcome, Status
from traceaudit.model.runs import Side

ORDER = [Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL]
MIRRORED = {
    Status.SAME: Status.SAME,
    Status.SLOWER: Status.FASTER,
    Status.FASTER: Status.SLOWER,
    Status.NEW: Status.GONE,
    Status.GONE: Status.NEW,
    Status.RENAMED: Status.RENAMED,
}
NAMES = ("norm", "gemm_a", "gemm_b", "act", "triton_poi_fused_add_1")


@st.composite
def runs(draw, steps=4):
    """A run of some kernels in some order, every step with times of its own."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=8))
    kernels = []
    for name in dict.fromkeys(names):
        spread = draw(st.lists(st.floats(-0.02, 0.02), min_size=steps, max_size=steps))
        us = draw(st.floats(1, 400))
        blocks = draw(st.sampled_from((64, 132)))
        kernels.append(kernel(name, us, launches=names.count(name), steps=steps, spread=spread, blocks=blocks))
    return run(*kernels, sequence=names, idle_us=draw(st.floats(0, 300)), source=draw(st.sampled_from("abcdef")))


sides = st.lists(runs(), min_size=1, max_size=3).map(lambda found: side(*found))


def close(one, other):
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other), 1)


@given(sides)
def test_a_side_does_not_differ_from_itself(one):
    result = diff(one, one)
    assert {row.status for row in result.kernels} == {Status.SAME}
    assert not any(row.changes for row in result.kernels)
    for row in (*result.kernels, result.step, *result.measures):
        assert row.effect.delta_ns == 0
    assert result.groups == result.findings == ()
    assert judge(result).verdict is Outcome.PASS


@given(sides, sides)
def test_seen_from_the_other_side_everything_is_mirrored(base, head):
    forward, backward = diff(base, head), diff(head, base)
    there = {(row.name, row.base_name): row for row in forward.kernels}
    back = {(row.base_name or row.name, row.name if row.base_name else None): row for row in backward.kernels}
    assert there.keys() == back.keys()
    for key, row in there.items():
        mirror = back[key]
        assert mirror.status is MIRRORED[row.status]
        assert close(mirror.effect.delta_ns, -row.effect.delta_ns)
        assert close(mirror.effect.noise_ns, row.effect.noise_ns)
        assert (mirror.launches_base, mirror.launches_head) == (row.launches_head, row.launches_base)
        assert {(change.what, change.head, change.base) for change in mirror.changes} == {
            (change.what, change.base, change.head) for change in row.changes
        }
    assert [(group.base, group.head) for group in forward.groups] == [(g.head, g.base) for g in backward.groups]
    for measure, mirror in zip(forward.measures, backward.measures, strict=True):
        assert close(mirror.effect.delta_ns, -measure.effect.delta_ns)
    assert (forward.common is None) == (backward.common is None)


@given(st.lists(runs(), min_size=2, max_size=3), sides, st.randoms(use_true_random=False))
def test_the_order_of_files_is_of_no_matter(found, head, random):
    turned = list(found)
    random.shuffle(turned)
    assert judge(diff(side(*found), head)) == judge(diff(side(*turned), head))


@given(sides, sides, st.floats(0, 0.2), st.floats(0, 0.2), st.floats(0, 5e4), st.floats(0, 5e4))
@settings(max_examples=200)
def test_raising_a_limit_never_makes_the_judgement_worse(base, head, relative, more, absolute, further):
    result = diff(base, head)
    strict = judge(result, Budget(limits=Limits(relative, absolute)))
    lenient = judge(result, Budget(limits=Limits(relative + more, absolute + further)))
    assert ORDER.index(lenient.verdict) <= ORDER.index(strict.verdict)


@given(sides, sides, st.floats(0.55, 0.99), st.floats(0, 0.0099))
def test_more_confidence_never_makes_a_failure_of_it(base, head, confidence, more):
    """A wider band can leave a question open; it cannot show what a narrower one did not."""
    from traceaudit.analyses.diff import DiffOptions

    sure = judge(diff(base, head, DiffOptions(confidence=confidence)))
    surer = judge(diff(base, head, DiffOptions(confidence=confidence + more)))
    assert surer.verdict is not Outcome.FAIL or sure.verdict is Outcome.FAIL


@given(sides, sides, st.integers(1, 5))
def test_times_in_another_unit_change_no_status(base, head, doublings):
    """All noise but the recorded absolute one scales with the times; scaled up, nothing shown is lost."""
    factor = 2.0**doublings

    def scaled(one):
        return Side(
            one.label,
            tuple(
                replace(
                    item,
                    kernels=tuple(
                        replace(found, step_ns=tuple(factor * time for time in found.step_ns)) for found in item.kernels
                    ),
                )
                for item in one.runs
            ),
        )

    small, large = diff(base, head), diff(scaled(base), scaled(head))
    shown = {row.name for row in small.kernels if row.effect.shown}
    assert shown <= {row.name for row in large.kernels if row.effect.shown}

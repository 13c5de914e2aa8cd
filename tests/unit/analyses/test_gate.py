import re
from dataclasses import replace

import pytest
from comparisons import decode, kernel, run, side

from traceaudit.analyses.diff import diff
from traceaudit.analyses.gate import baseline_regressed, judge
from traceaudit.model.budget import Budget, FloorRule, KernelRule, LaunchRule, Limits, MeasureRule, ShareRule
from traceaudit.model.findings import Verdict
from traceaudit.model.results.diff import Outcome, worst

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def times(count, *args, **options):
    return side(*(decode(*args, **options) for _ in range(count)))


def check(base, head, **budget):
    return judge(diff(base, head), Budget(**budget))


def rules(result, outcome):
    return [ruling.rule for ruling in result.rulings if ruling.outcome is outcome]


def test_identical_code_passes_with_one_run_and_with_three():
    for count in (1, 3):
        assert check(times(count), times(count)).verdict is PASS


def test_a_regression_beyond_limits_and_noise_fails_and_names_the_kernel():
    result = check(times(3), times(3, 1.06))
    assert result.verdict is FAIL
    assert [row.name for row in result.diff.kernels if row.violates] == ["gemm_0_kernel"]
    assert any("gemm_0_kernel: +6.0 µs (+6.0 %)" in ruling.message for ruling in result.rulings)
    assert check(times(3, 1.06), times(3)).verdict is PASS


def test_a_regression_beyond_the_limits_within_the_noise_is_inconclusive():
    # 3 % of one run a side: the recorded noise is 0.8 % a run, and ten kernels are looked at.
    result = check(times(1), times(1, 1.03))
    assert result.verdict is INCONCLUSIVE
    assert rules(result, INCONCLUSIVE) == ["within_noise"]


def test_growth_within_the_limits_passes():
    assert check(times(3), times(3, 1.015)).verdict is PASS


def test_a_relative_limit_alone_does_not_fail_a_tiny_kernel():
    base = side(*(run(kernel("gemm", 500), kernel("fill", 2.0)) for _ in range(3)))
    head = side(*(run(kernel("gemm", 500), kernel("fill", 2.9)) for _ in range(3)))
    assert check(base, head).verdict is PASS
    assert check(base, head, limits=Limits(relative=0.02)).verdict is FAIL


def test_steps_that_scatter_leave_room_for_a_regression_and_do_not_pass():
    wild = (0.0, 0.2, -0.2, 0.3, -0.3)
    noisy = side(run(kernel("gemm", 100, spread=wild), kernel("norm", 100)))
    result = check(noisy, side(run(kernel("gemm", 100, spread=wild[::-1]), kernel("norm", 100))))
    assert result.verdict is INCONCLUSIVE
    assert "noise_too_large" in rules(result, INCONCLUSIVE)


def test_a_new_kernel_fails_by_its_time_alone():
    base = side(*(run(kernel("gemm", 500), kernel("norm", 20)) for _ in range(3)))
    head = side(*(run(kernel("gemm", 500), kernel("extra", 6), kernel("norm", 20)) for _ in range(3)))
    result = check(base, head)
    assert result.verdict is FAIL
    assert [row.name for row in result.diff.kernels if row.violates] == ["extra"]


@pytest.mark.parametrize(("fused_us", "expected"), [(35, PASS), (70, FAIL)])
def test_a_fused_kernel_is_judged_against_what_it_replaced(fused_us, expected):
    base = side(*(run(kernel("norm", 100), kernel("mul", 20), kernel("add", 30), kernel("act", 100)) for _ in range(3)))
    head = side(*(run(kernel("norm", 100), kernel("mul_add", fused_us), kernel("act", 100)) for _ in range(3)))
    result = check(base, head)
    assert result.verdict is expected
    assert not any(row.violates for row in result.diff.kernels)
    assert bool(result.diff.groups[0].violates) is (expected is FAIL)


def test_a_clock_that_changed_everything_is_inconclusive():
    result = check(times(3), times(3, factor=1.06))
    assert result.verdict is INCONCLUSIVE
    assert set(rules(result, INCONCLUSIVE)) == {"common_shift"}


def test_a_kernel_that_grew_more_than_the_clock_explains_fails():
    result = check(times(3, kernels=20), times(3, 1.30, factor=1.03, kernels=20))
    assert result.verdict is FAIL
    assert [row.name for row in result.diff.kernels if row.violates] == ["gemm_0_kernel"]


def test_few_steps_decide_nothing():
    short = side(run(kernel("gemm", 100, steps=2)))
    slow = side(run(kernel("gemm", 200, steps=2)))
    result = check(short, slow)
    assert result.verdict is INCONCLUSIVE
    assert rules(result, INCONCLUSIVE)[:2] == ["steps", "steps"]


@pytest.mark.parametrize("one", [run(kernel("gemm", 9, steps=1)), decode(verdict=Verdict.UNRELIABLE)])
def test_the_same_recordings_do_not_differ_whatever_they_are_like(one):
    assert check(side(one), side(replace(one, source="copy.json"))).verdict is PASS
    assert not diff(side(one), side(one)).kernels[0].violates


def test_a_budget_of_ones_own_asks_for_whole_traces_even_then():
    one = side(decode(verdict=Verdict.UNRELIABLE))
    assert check(one, one, source="b.toml").verdict is INCONCLUSIVE


def test_unlike_sides_decide_nothing():
    result = check(times(3, batch=16), times(3, batch=32))
    assert result.verdict is INCONCLUSIVE
    assert rules(result, INCONCLUSIVE) == ["unlike_runs"]


@pytest.mark.parametrize(
    ("verdict", "require", "expected"),
    [
        (Verdict.PARTIAL, Verdict.PARTIAL, PASS),
        (Verdict.PARTIAL, Verdict.COMPLETE, INCONCLUSIVE),
        (Verdict.UNRELIABLE, Verdict.PARTIAL, INCONCLUSIVE),
        (Verdict.UNRELIABLE, Verdict.UNRELIABLE, PASS),
    ],
)
def test_traces_that_cannot_be_believed_decide_nothing(verdict, require, expected):
    assert check(times(3), times(3, verdict=verdict), require=require).verdict is expected


def test_an_unbelievable_regression_does_not_fail():
    assert check(times(3), times(3, 1.5, verdict=Verdict.UNRELIABLE)).verdict is INCONCLUSIVE


def test_a_budget_can_ask_for_runs():
    result = check(times(1), times(3), min_runs=3)
    assert result.verdict is INCONCLUSIVE
    assert rules(result, INCONCLUSIVE) == ["min_runs"]


def test_a_slower_wall_fails_and_a_noisy_one_decides_nothing():
    steady = side(*(decode(wall_us=(900 + n,)) for n in range(3)))
    slow = side(*(decode(wall_us=(1300 + n,)) for n in range(3)))
    result = check(steady, slow)
    assert result.verdict is FAIL
    assert result.diff.measure("wall").violates
    wild = side(*(decode(wall_us=(wall,)) for wall in (900, 1500, 2400)))
    assert check(steady, wild).verdict is PASS


def kernel_rule(pattern, **options):
    return KernelRule(rule="kernel[0]", line=7, match=re.compile(pattern), **options)


def test_a_rule_of_a_kernel_stands_in_place_of_the_general_limits():
    generous = kernel_rule("gemm_0", limits=Limits(relative=0.2))
    rest = {"measures": tuple(MeasureRule(name, 1, name, limits=Limits(relative=0.2)) for name in ("op_time", "busy"))}
    assert check(times(3), times(3, 1.1), kernels=(generous,), **rest).verdict is PASS
    strict = kernel_rule("gemm_0", limits=Limits(relative=0.005))
    result = check(times(5), times(5, 1.018), kernels=(strict,))
    assert [(ruling.rule, ruling.line) for ruling in result.rulings if ruling.outcome is FAIL] == [("kernel[0]", 7)]
    assert {row.violates for row in result.diff.kernels if row.violates} == {("kernel[0].relative",)}


def test_an_ignored_kernel_is_not_judged():
    rest = {
        "measures": tuple(
            MeasureRule(name, 1, name, limits=Limits(relative=0.2)) for name in ("op_time", "busy", "window")
        )
    }
    assert check(times(3), times(3, 1.1), kernels=(kernel_rule("gemm_0", ignore=True),), **rest).verdict is PASS
    assert check(times(3), times(3), kernels=(kernel_rule("nothing", ignore=True),)).verdict is PASS


@pytest.mark.parametrize(("max_us", "expected"), [(900, PASS), (800, PASS), (799, INCONCLUSIVE), (700, FAIL)])
def test_bounds_of_head_sum_the_kernels_that_match(max_us, expected):
    result = check(times(3), times(3), kernels=(kernel_rule("gemm", max_ns=max_us * 1000),))
    assert result.verdict is expected
    (ruling,) = [ruling for ruling in result.rulings if ruling.rule == "kernel[0].max_us"]
    assert ruling.line == 7
    assert "800 µs a step" in ruling.message


@pytest.mark.parametrize(("most", "expected"), [(8, PASS), (7, FAIL)])
def test_bounds_on_launches_of_kernels(most, expected):
    assert check(times(3), times(3), kernels=(kernel_rule("gemm", max_launches=most),)).verdict is expected


def test_a_rule_that_matches_no_kernel_decides_nothing():
    result = check(times(3), times(3), kernels=(kernel_rule("gemn", max_ns=1),))
    assert rules(result, INCONCLUSIVE) == ["kernel[0].match"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (MeasureRule("account.idle_graph", 3, "idle_graph", max_ns=100_000), PASS),
        (MeasureRule("account.idle_graph", 3, "idle_graph", max_frac=0.5), PASS),
        (MeasureRule("account.compute", 3, "compute", max_ns=700_000), FAIL),
        (MeasureRule("account.compute", 3, "compute", max_frac=0.5), FAIL),
        (MeasureRule("window", 3, "window", max_ns=900_000), PASS),
        (MeasureRule("window", 3, "window", max_ns=700_000), FAIL),
        (MeasureRule("wall", 3, "wall", max_ns=900_000), INCONCLUSIVE),
    ],
)
def test_bounds_on_quantities_of_the_step(rule, expected):
    assert check(times(3), times(3), measures=(rule,)).verdict is expected


def test_an_account_is_judged_where_a_budget_names_it():
    rule = MeasureRule("account.idle_graph", 3, "idle_graph", limits=Limits(relative=0.1))
    base, head = times(3), times(3, idle_us=80)
    assert not check(base, head).diff.measure("idle_graph").violates
    assert check(base, head, measures=(rule,)).diff.measure("idle_graph").violates == ("account.idle_graph.relative",)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (LaunchRule("launches", 1, maximum=21), PASS),
        (LaunchRule("launches", 1, maximum=20), FAIL),
        (LaunchRule("launches", 1, increase=0), FAIL),
        (LaunchRule("launches", 1, increase=12), PASS),
    ],
)
def test_bounds_on_device_ops(rule, expected):
    base = replace(diff(times(3), times(3)), launches_base=9)
    assert judge(base, Budget(launches=(rule,))).verdict is expected


@pytest.mark.parametrize(("most", "expected"), [(0.6, PASS), (0.4, FAIL)])
def test_a_bound_on_what_is_unaccounted(most, expected):
    head = times(3, wall_us=(1664,))
    assert check(head, head, unaccounted=(ShareRule("unaccounted", 1, most),)).verdict is expected


@pytest.mark.parametrize(("least", "expected"), [(0.4, PASS), (0.6, FAIL)])
def test_a_bound_on_the_share_of_the_floor(least, expected):
    floor = FloorRule("floor", 1, floor_ns=416_000, min_frac=least)  # half of the window of 832 µs
    result = check(times(3), times(3), floors=(floor,))
    assert result.verdict is expected
    assert "50.0 % of the window" in result.rulings[-1].message


def test_a_base_slower_than_its_record_is_a_finding():
    record = side(decode(), decode(), decode(), label="main")
    slow = judge(diff(record, times(3, 1.1)))
    finding = baseline_regressed(slow)
    assert (finding.code, finding.impact_ns) == ("baseline_regressed", 10_000)
    assert "'main'" in finding.message
    assert baseline_regressed(judge(diff(record, times(3)))) is None


def test_the_worst_outcome_counts():
    assert worst([]) is PASS
    assert worst([PASS, FAIL, INCONCLUSIVE]) is FAIL

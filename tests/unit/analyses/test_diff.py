import pytest
from comparisons import decode, kernel, run, side

from traceaudit.analyses.diff import DiffOptions, diff
from traceaudit.model.findings import Finding, Severity, Verdict
from traceaudit.model.results.diff import Change, Status


def by_name(result):
    return {row.name: row for row in result.kernels}


def test_a_kernel_that_grew_beyond_its_noise_is_slower_and_from_the_other_side_faster():
    fast, slow = side(decode()), side(decode(1.10))
    assert by_name(diff(fast, slow))["gemm_0_kernel"].status is Status.SLOWER
    assert by_name(diff(slow, fast))["gemm_0_kernel"].status is Status.FASTER
    assert {row.status for name, row in by_name(diff(fast, slow)).items() if name != "gemm_0_kernel"} == {Status.SAME}


def test_values_are_per_step_and_the_largest_kernel_comes_first():
    result = diff(side(decode()), side(decode(1.10)))
    first = result.kernels[0]
    assert (first.name, first.effect.base_ns, first.effect.head_ns) == (
        "gemm_0_kernel",
        pytest.approx(100_000),
        pytest.approx(110_000),
    )
    assert by_name(result)["norm_kernel"].launches_base == 12
    assert (result.launches_base, result.launches_head) == (21, 21)


def test_new_gone_and_renamed_kernels():
    base = side(run(kernel("norm", 10), kernel("old_gemm", 100), kernel("act", 10), kernel("dropped", 5)))
    head = side(run(kernel("extra", 5), kernel("norm", 10), kernel("new_gemm", 101), kernel("act", 10)))
    rows = by_name(diff(base, head))
    assert {name: row.status for name, row in rows.items()} == {
        "norm": Status.SAME,
        "act": Status.SAME,
        "new_gemm": Status.RENAMED,
        "extra": Status.NEW,
        "dropped": Status.GONE,
    }
    assert rows["new_gemm"].base_name == "old_gemm"
    assert (rows["extra"].effect.base_ns, rows["extra"].launches_base) == (None, None)
    assert (rows["dropped"].effect.head_ns, rows["dropped"].launches_head) == (None, None)


def test_a_fused_group_is_compared_as_a_whole():
    base = side(run(kernel("norm", 10), kernel("mul", 20), kernel("add", 30), kernel("act", 10)))
    head = side(run(kernel("norm", 10), kernel("mul_add", 35), kernel("act", 10)))
    (group,) = diff(base, head).groups
    assert (group.kind, group.base, group.head) == ("fused", ("add", "mul"), ("mul_add",))
    assert (group.effect.base_ns, group.effect.head_ns) == (pytest.approx(50_000), pytest.approx(35_000))


def test_changes_of_the_launch_are_named():
    old = run(kernel("gemm", 50, blocks=132, registers=168, shared_mem=0))
    new = run(kernel("gemm", 50, blocks=264, registers=255, shared_mem=1024))
    (row,) = diff(side(old), side(new)).kernels
    # 128 threads of 168 registers: 3 blocks an SM; of 255 (8192 a warp, 8 warps): 2.
    assert row.changes == (
        Change("grid", "132x1x1", "264x1x1"),
        Change("registers", "168", "255"),
        Change("shared_memory", "0 B", "1024 B"),
        Change("blocks_per_sm", "1.00", "2.00"),
        Change("waves", "0.33", "1.00"),
    )


def test_a_kernel_that_became_communication_says_so():
    old, new = run(kernel("reduce", 50)), run(kernel("reduce", 50, kind="comm"))
    (row,) = diff(side(old), side(new)).kernels
    assert Change("kind", "compute", "comm") in row.changes


def test_unlike_sides_are_not_compared_unless_allowed():
    base, head = side(decode(batch=16)), side(decode(1.1, batch=32))
    refused = diff(base, head)
    assert not refused.comparable
    assert (refused.kernels, refused.measures) == ((), ())
    assert [finding.code for finding in refused.findings] == ["unlike_runs"]
    allowed = diff(base, head, DiffOptions(allow=frozenset({"batch"})))
    assert allowed.comparable
    assert len(allowed.kernels) == 10


def test_a_factor_that_all_kernels_share_is_the_clock():
    result = diff(side(decode(), decode(), decode()), side(*(decode(factor=1.04) for _ in range(3))))
    assert result.common.factor == pytest.approx(1.04)
    assert result.common.kernels == 9  # the fill of 2 µs is too small to tell
    assert [finding.code for finding in result.findings] == ["unlike_runs"]
    assert "clock" in result.findings[0].message


@pytest.mark.parametrize("head", [decode(1.10), decode(factor=1.004), decode(factor=1.04, kernels=3)])
def test_one_kernel_a_tiny_factor_or_few_kernels_are_no_clock(head):
    kernels = len(head.kernels) - 2
    base = decode(kernels=kernels)
    assert diff(side(base, base, base), side(head, head, head)).common is None


def test_a_window_that_the_host_sets_is_not_judged():
    bound = diff(side(decode()), side(decode()))
    assert bound.step.judged
    waiting = diff(side(decode(idle_us=800)), side(decode(idle_us=900)))
    assert not waiting.step.judged
    assert "busy for 48 %" in waiting.step.reason


def test_the_wall_is_judged_from_three_runs_a_side_on():
    one = diff(side(decode(wall_us=(900, 901, 902))), side(decode(wall_us=(950,))))
    assert not one.measure("wall").judged
    three = side(*(decode(wall_us=(wall,)) for wall in (900, 901, 902)))
    measure = diff(three, three).measure("wall")
    assert measure.judged
    assert measure.effect.base_ns == 901_000
    assert diff(three, side(decode())).measure("wall") is None


def test_accounts_are_compared_one_by_one():
    result = diff(side(decode(idle_us=10)), side(decode(idle_us=30)))
    measure = result.measure("idle_graph")
    assert (measure.effect.base_ns, measure.effect.head_ns, measure.judged) == (10_000, 30_000, False)
    assert result.measure("no such account") is None


def test_a_side_says_what_it_is_and_its_worst_verdict():
    runs = (decode(source="a.json"), decode(source="b.json", verdict=Verdict.PARTIAL))
    found = diff(side(*runs, label="main"), side(decode())).base
    assert (found.label, found.runs, found.steps, found.verdict) == ("main", 2, 10, Verdict.PARTIAL)
    assert sorted(found.sources) == ["a.json", "b.json"]


def test_time_outside_the_trace_is_unaccounted():
    one = side(decode(wall_us=(1664,)))  # windows of 822 + 10 µs
    assert diff(one, one).base.unaccounted_frac == pytest.approx(0.5)


def test_findings_of_the_traces_are_kept():
    finding = Finding("clock_skew", Severity.WARNING, "2 ops start early")
    assert diff(side(decode()), side(decode()), findings=(finding,)).findings == (finding,)


def test_a_kernel_that_one_run_lacks_counts_as_nothing_there():
    base = side(run(kernel("gemm", 100), kernel("rare", 10)), run(kernel("gemm", 100)), run(kernel("gemm", 100)))
    row = by_name(diff(base, base))["rare"]
    assert (row.effect.base_ns, row.launches_base) == (0, 0)
    assert row.effect.ratio is None

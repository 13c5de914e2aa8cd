import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.config import SelectionFlags, StepFlags, WallFlags, reconcile_options, wall_of
from traceaudit.errors import UsageError
from traceaudit.model.results import Wall


@pytest.mark.parametrize(
    ("flags", "wall"),
    [
        (WallFlags(), None),
        (WallFlags(wall_ms="3.3"), Wall(3_300_000, "--wall-ms 3.3")),
        (WallFlags(wall_ms=" 5.7e2 "), Wall(570_000_000, "--wall-ms 5.7e2")),
        (WallFlags(wall_total_ms="10", wall_steps=3), Wall(3_333_333, "--wall-total-ms 10 / 3 steps")),
        # 64 / 112.280702 s = 0.57000000014... s
        (
            WallFlags(tokens_per_second="112.280702", concurrency=64),
            Wall(569_999_999, "64 running / 112.280702 tokens/s"),
        ),
        # 16 x 2.5 / 80 s = 0.5 s
        (
            WallFlags(tokens_per_second="80", concurrency=16, accept_length="2.5"),
            Wall(500_000_000, "16 running x 2.5 accepted / 80 tokens/s"),
        ),
    ],
)
def test_walls(flags, wall):
    assert wall_of(flags) == wall


@given(st.integers(min_value=1, max_value=10**15))
def test_a_wall_of_whole_nanoseconds_is_exact(ns):
    assert wall_of(WallFlags(wall_ms=f"{ns // 10**6}.{ns % 10**6:06d}")).step_ns == ns


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (WallFlags(wall_ms="0"), "--wall-ms must be positive and finite, found '0'"),
        (WallFlags(wall_ms="-1"), "must be positive"),
        (WallFlags(wall_ms="nan"), "must be positive and finite"),
        (WallFlags(wall_ms="inf"), "must be positive and finite"),
        (WallFlags(wall_ms="3.3ms"), "--wall-ms is not a number: '3.3ms'"),
        (WallFlags(wall_ms=""), "is not a number"),
        (WallFlags(wall_ms="1e-9"), "less than a nanosecond"),
        (WallFlags(wall_ms="1e999999"), "no time or rate"),
        (WallFlags(wall_ms="1e-999999"), "no time or rate"),
        (WallFlags(wall_ms="3", tokens_per_second="28", concurrency=1), "each state the step time"),
        (WallFlags(wall_total_ms="3"), "--wall-total-ms alone"),
        (WallFlags(wall_steps=3), "--wall-steps alone"),
        (WallFlags(wall_total_ms="3", wall_steps=0), "--wall-steps must be at least 1"),
        (WallFlags(tokens_per_second="28"), "--tokens-per-second alone"),
        (WallFlags(concurrency=16), "--concurrency alone"),
        (WallFlags(wall_ms="3", accept_length="2"), "--accept-length alone"),
        (WallFlags(tokens_per_second="28", concurrency=0), "--concurrency must be at least 1"),
        (WallFlags(tokens_per_second="28", concurrency=1, accept_length="0.5"), "at least 1"),
    ],
)
def test_bad_walls_are_refused(flags, message):
    with pytest.raises(UsageError) as caught:
        wall_of(flags)
    assert message in str(caught.value)


def test_a_benchmark_result_states_the_wall(tmp_path):
    path = tmp_path / "bench.json"
    result = {"output_throughput": 28.0, "total_token_throughput": 56.0, "mean_tpot_ms": 285.0}
    path.write_text(json.dumps(result))
    assert wall_of(WallFlags(bench_result=str(path))).step_ns == 285_000_000
    # 8 / 28 s = 285.714286 ms
    assert wall_of(WallFlags(bench_result=str(path), concurrency=8)).step_ns == 285_714_286


def test_a_missing_partner_is_named_in_the_hint():
    with pytest.raises(UsageError) as caught:
        wall_of(WallFlags(tokens_per_second="28"))
    assert caught.value.hint == "add --concurrency N"


def test_steps_and_selection():
    options = reconcile_options(steps=StepFlags("decode"), selection=SelectionFlags(1, 2, 3), scheduler="sched.*")
    assert options.steps.annotation.pattern == "decode"
    assert (options.selection.rank, options.selection.device, options.selection.step) == (1, 2, 3)
    assert options.scheduler.pattern == "sched.*"
    assert reconcile_options(steps=StepFlags(steps=8)).steps.divide_by == 8


@pytest.mark.parametrize(
    "flags",
    [
        {"steps": StepFlags("a", 3)},
        {"steps": StepFlags(steps=0)},
        {"steps": StepFlags(steps=3), "selection": SelectionFlags(step=1)},
        {"steps": StepFlags("(")},
        {"steps": StepFlags("")},
        {"scheduler": "*"},
        {"selection": SelectionFlags(rank=-1)},
        {"selection": SelectionFlags(device=-1)},
        {"selection": SelectionFlags(step=-1)},
    ],
)
def test_flags_that_mean_nothing_are_refused(flags):
    with pytest.raises(UsageError):
        reconcile_options(**flags)

"""Findings and the verdict they lead to."""

import pytest

from traceaudit.model.findings import CODES, Finding, Severity, Verdict, verdict_of
from traceaudit.model.results import Completeness

CONTRACT = {
    "launch_without_op", "op_without_launch", "graph_replay_uneven", "idle_while_pending", "impossible_overlap",
    "clock_skew", "zero_duration", "negative_duration", "absurd_duration", "duplicate_rows", "coarse_timestamps",
    "file_truncated", "file_repaired", "rows_dropped", "second_document", "capture_edge_loss", "device_without_ops",
    "ops_outside_steps", "steps_uneven", "spinning_collective", "profiler_dilation", "wall_below_busy",
    "batch_mismatch", "over_peak", "cache_resident", "underfilled_grid", "rank_clock_offset", "rank_missing",
    "rank_skew", "engine_missing", "unlike_runs", "baseline_regressed",
}  # fmt: skip
"""Codes that scripts rely on: more may be added, none removed."""


def found(code, severity, **more):
    return Finding(code, severity, "what was found", **more)


def test_every_code_of_the_contract_is_declared():
    assert set(CODES) >= CONTRACT


def test_an_unknown_code_is_refused():
    with pytest.raises(ValueError, match="unknown finding code: 'oops'"):
        found("oops", Severity.INFO)


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [
        ([], Verdict.COMPLETE),
        ([Severity.INFO], Verdict.COMPLETE),
        ([Severity.INFO, Severity.WARNING], Verdict.PARTIAL),
        ([Severity.WARNING, Severity.ERROR, Severity.INFO], Verdict.UNRELIABLE),
    ],
)
def test_the_worst_finding_about_the_trace_decides(severities, verdict):
    assert verdict_of(found("clock_skew", severity) for severity in severities) is verdict


@pytest.mark.parametrize("code", ["wall_below_busy", "profiler_dilation", "batch_mismatch", "rank_skew", "over_peak"])
def test_what_is_not_about_the_trace_decides_nothing(code):
    assert verdict_of([found(code, Severity.ERROR)]) is Verdict.COMPLETE


def test_completeness_lists_the_worst_first():
    """By severity, then by time at stake; without a time last."""
    findings = (
        found("coarse_timestamps", Severity.INFO, impact_ns=9),
        found("clock_skew", Severity.WARNING),
        found("zero_duration", Severity.WARNING, impact_ns=5),
        found("file_truncated", Severity.ERROR, impact_ns=1),
    )
    completeness = Completeness.of(findings)
    assert completeness.verdict is Verdict.UNRELIABLE
    assert [finding.code for finding in completeness.findings] == [
        "file_truncated",
        "zero_duration",
        "clock_skew",
        "coarse_timestamps",
    ]


def test_idle_time_is_in_doubt_wherever_ops_may_be_missing():
    for code in ("launch_without_op", "idle_while_pending", "capture_edge_loss", "file_truncated"):
        assert CODES[code].doubts >= {"idle_ns", "idle_host", "idle_unknown"}


class TestDoubts:
    def of(self, *findings):
        return Completeness.of(findings)

    def test_a_warning_doubts_its_own_numbers(self):
        skewed = self.of(found("clock_skew", Severity.WARNING))
        assert skewed.doubts(0, 0, "busy_ns", "idle_host")
        assert not skewed.doubts(0, 0, "busy_ns")

    def test_a_note_doubts_nothing(self):
        assert not self.of(found("clock_skew", Severity.INFO)).doubts(0, 0, "idle_host")

    def test_a_finding_doubts_its_own_place(self):
        late = self.of(found("clock_skew", Severity.WARNING, rank=1, device=0))
        assert late.doubts(1, 0, "idle_host")
        assert not late.doubts(0, 0, "idle_host")
        assert not late.doubts(1, 1, "idle_host")

    def test_everything_is_doubtful_where_the_trace_is_unreliable(self):
        assert self.of(found("file_truncated", Severity.ERROR)).doubts(3, 3, "anything")

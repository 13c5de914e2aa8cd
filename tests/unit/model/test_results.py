"""Results refuse to be built when their parts do not sum: every law, broken by one nanosecond."""

from dataclasses import replace

import pytest
import samples

from traceaudit.errors import ExitCode, InvariantError
from traceaudit.model.results import (
    Accounts,
    DeviceKernels,
    IdleLatency,
    IdlePosition,
    Ledger,
    StepSource,
    Totals,
)
from traceaudit.model.results.conservation import conserve
from traceaudit.model.results.gaps import (
    CriticalPath,
    DeviceGaps,
    GapRow,
    HostLedger,
    HostShare,
    Limit,
    OtherThread,
    PathPart,
    ShortGaps,
)

LEDGER = Ledger(
    steps=2,
    window_ns=100,
    wall_ns=130,
    accounts=Accounts(
        compute=40, exposed_comm=5, exposed_copy=3, idle_graph=2, idle_latency=10, idle_host=30, idle_unknown=10
    ),
    idle_latency_by=IdleLatency(launch_call=4, delivery=5, turnaround=1),
    idle_host_by={"sync": 12, "unrecorded": 18},
    idle_by_position=IdlePosition(leading=20, between=30, trailing=2),
)
ROW = GapRow(
    position="between",
    before="a",
    after="b",
    count=2,
    total_ns=10,
    per_step_ns=5,
    median_ns=5,
    p90_ns=6,
    max_ns=6,
    host_ns=4,
    latency_ns=3,
    graph_ns=2,
    unknown_ns=1,
    causes={"framework": 6, "delivery": 4},
    where=None,
)
HOST = HostLedger("1", 20, 6, {"sync": HostShare(15, 1), "unrecorded": HostShare(5, 5)})
PATH = CriticalPath(0, 30, (PathPart("op", "a", 1, 10), PathPart("op", "b", 1, 12), PathPart("host", None, 2, 8)))


def test_parts_that_sum_are_silent():
    assert conserve("parts", 7, 7) is None


def test_parts_that_do_not_sum_are_our_own_bug():
    with pytest.raises(InvariantError, match="parts sum to 6 ns, the whole is 7 ns") as caught:
        conserve("things", 6, 7)
    assert caught.value.exit_code == ExitCode.INTERNAL == 70
    assert "report" in caught.value.hint


class TestLedger:
    def test_sums(self):
        assert LEDGER.accounts.total() == 100
        assert (LEDGER.accounts.busy, LEDGER.accounts.idle) == (48, 52)
        assert LEDGER.residual_ns == 30
        assert LEDGER.host_cost_ns == 30 + 4
        assert LEDGER.accounts.plus(Accounts(compute=1, idle_host=2)).total() == 103

    def test_without_a_wall_there_is_no_residual(self):
        assert replace(LEDGER, wall_ns=None).residual_ns is None

    def test_a_residual_is_signed(self):
        assert replace(LEDGER, wall_ns=90).residual_ns == -10

    @pytest.mark.parametrize(
        ("law", "change"),
        [
            ("accounts", {"window_ns": 101}),
            ("idle_latency_by", {"idle_latency_by": IdleLatency(4, 5, 2)}),
            ("idle_host_by", {"idle_host_by": {"sync": 12, "unrecorded": 17}}),
            ("idle_by_position", {"idle_by_position": IdlePosition(20, 30, 3)}),
        ],
    )
    def test_every_law_holds(self, law, change):
        with pytest.raises(InvariantError, match=f"^{law}: "):
            replace(LEDGER, **change)


class TestSteps:
    def test_accounts_of_a_step_sum_to_its_window(self):
        item = samples.step_item(3, 100, 60)
        with pytest.raises(InvariantError, match="accounts of step 3"):
            replace(item, window_ns=99)

    def test_steps_left_out_are_not_used(self):
        items = [samples.step_item(i, 100, 60, left_out="cut" if i == 1 else None) for i in range(3)]
        assert [item.used for item in items] == [True, False, True]
        audit = samples.audit(items)
        assert (audit.steps.used, len(audit.steps.items)) == (2, 3)
        assert audit.steps.source is StepSource.PROFILER_STEP

    def test_idle_is_span_minus_busy(self):
        assert Totals(device_ops=1, op_time_ns=9, busy_ns=7, span_ns=10, gaps=1).idle_ns == 3


class TestKernels:
    def test_rows_sum_to_the_op_time(self):
        row = samples.kernel_row(op_time_ns=900)
        with pytest.raises(InvariantError, match="op time of the kernels"):
            DeviceKernels(rank=0, device=0, name=None, op_time_ns=901, busy_ns=900, kernels=(row,))


class TestGaps:
    @pytest.mark.parametrize(
        ("law", "result", "change"),
        [
            ("owners of a gap", ROW, {"host_ns": 5}),
            ("owners of a gap", ROW, {"graph_ns": 1}),
            ("causes of a gap", ROW, {"causes": {"framework": 6, "delivery": 5}}),
            ("host ledger", HOST, {"interval_ns": 21}),
            ("exposed host time", HOST, {"host_cost_ns": 7}),
            ("exposed host time", HOST, {"others": (OtherThread("2", 1),)}),
            ("critical path", PATH, {"window_ns": 29}),
        ],
    )
    def test_every_law_holds(self, law, result, change):
        with pytest.raises(InvariantError, match=f"^{law}: "):
            replace(result, **change)

    def test_rows_sum_to_the_idle_time(self):
        values = {
            "rank": 0,
            "device": 0,
            "name": None,
            "steps_used": 2,
            "window_ns": 100,
            "idle_ns": 10,
            "verdict": Limit.MIXED,
            "shares": {},
            "gaps": (ROW,),
            "host": HOST,
            "short": ShortGaps(10, 0, 0, 0, 0),
            "queue_depth": 0.0,
            "path": PATH,
        }
        assert DeviceGaps(**values).idle_ns == 10
        with pytest.raises(InvariantError, match=r"^gaps: "):
            DeviceGaps(**values | {"idle_ns": 11})

    def test_the_largest_cause_names_a_gap(self):
        assert ROW.cause == "framework"

    def test_the_path_by_kind(self):
        assert list(PATH.by_kind().items()) == [("op", 22), ("host", 8)]

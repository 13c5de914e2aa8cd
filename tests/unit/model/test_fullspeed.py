"""The host without the profiler: fits to a wall. Times in µs; traces as in test_retime.

Host-bound: the chain of the host is 10 + 4 + 96 + 4 + 86 = 200 for two steps. One row (the step's marker) begins in
the 10, one (the next marker) in the 96, none in the 86; each call counts one for its op.
"""

import pytest
from builders import TraceBuilder
from views import audit_of, view_of

from traceaudit.model.fullspeed import as_profiled, by_factor, by_row
from traceaudit.model.retime import plan_of, retime
from traceaudit.model.timeline import NodeType, timeline_of


def markers(*starts, end):
    trace = TraceBuilder()
    for i, (start, stop) in enumerate(zip(starts, [*starts[1:], end], strict=True)):
        trace.annotation(f"ProfilerStep#{i}", at=start, dur=stop - start)
    return trace


def host_bound():
    trace = markers(0, 100, end=200)
    trace.launch(at=10, dur=4).kernel("a", at=20, dur=20)
    trace.launch(at=110, dur=4).kernel("b", at=120, dur=20)
    return planned(trace)


def device_bound():
    """a [5, 65), b [75, 135), c [145, 205), launched ahead: 180 of ops, twice 10 between them."""
    trace = markers(0, 10, 20, end=30)
    for i, name in enumerate("abc"):
        trace.launch(at=10 * i + 2, dur=1).kernel(name, at=5 + 70 * i, dur=60)
    return planned(trace)


def planned(trace):
    view = view_of(trace)
    return plan_of(timeline_of(view), audit_of(view))


def step_of(plan, model):
    """Return the step under a model, in µs, without its rest."""
    return (retime(plan, model.costs.duration_ns, model.costs.lag_ns) - plan.start_ns) / plan.steps / 1000


class TestAsProfiled:
    def test_without_a_wall_nothing_remains(self):
        plan = host_bound()
        model = as_profiled(plan, None)
        assert (step_of(plan, model), model.rest_ns) == (100, 0)

    def test_what_the_wall_has_beyond_is_the_rest(self):
        assert as_profiled(host_bound(), 120_000).rest_ns == 20_000
        assert as_profiled(host_bound(), 70_000).rest_ns == -30_000


class TestByFactor:
    def test_all_host_time_shrinks_alike(self):
        """Wall 60 a step: 120 of 200, 60 %; calls of 4 become 2.4, ops stay."""
        plan = host_bound()
        model = by_factor(plan, 60_000)
        assert step_of(plan, model) == pytest.approx(60, rel=2e-4)
        assert model.rest_ns == pytest.approx(0, abs=20)
        assert model.name == "all host time shrank to 60 %"
        calls = plan.node_type != NodeType.OP
        assert model.costs.duration_ns[calls] == pytest.approx([2_400, 2_400], rel=1e-3)
        assert model.costs.duration_ns[~calls].tolist() == [20_000, 20_000]

    def test_a_wall_above_the_step_leaves_a_rest(self):
        plan = host_bound()
        model = by_factor(plan, 120_000)
        assert (step_of(plan, model), model.rest_ns) == (100, 20_000)

    def test_the_devices_own_gaps_shrink_last(self):
        """Wall 61 a step, 183: without host the first op begins at 2: 2 + 180 + 20 p, so that p = 0.05."""
        plan = device_bound()
        model = by_factor(plan, 61_000)
        assert step_of(plan, model) == pytest.approx(61, rel=2e-4)
        edges = model.costs.lag_ns[: len(plan.edge_lag_ns)]
        assert edges[plan.edge_lag_ns == 10_000] == pytest.approx([500, 500], rel=0.05)

    def test_ops_never_shrink(self):
        """Wall 50: 2 + 180 = 182, 60.67 a step, is the least; what no model can remove is a negative rest."""
        plan = device_bound()
        model = by_factor(plan, 50_000)
        assert step_of(plan, model) == pytest.approx(182 / 3, rel=3e-4)
        assert model.rest_ns == pytest.approx(50_000 - 182_000 / 3, abs=20)


class TestByRow:
    def test_every_row_cost_the_same(self):
        """Wall 90 a step, 20 less in all: at 6 a row the calls lose 4 each, all they have, the 10 and the 96 lose 6."""
        plan = host_bound()
        models = by_row(plan, 90_000)
        for model in models:
            assert step_of(plan, model) == pytest.approx(90, rel=2e-4)
        calls = plan.node_type != NodeType.OP
        assert models[0].costs.duration_ns[calls].tolist() == [0, 0]
        assert models[0].costs.lag_ns[-1] == pytest.approx(10_000 - 6_000, abs=20)

    def test_where_the_device_bounds_the_step_a_range_of_costs_will_do(self):
        """Wall as profiled: any cost that leaves the host ahead of the device fits; the usual 2 us comes first.

        At 2 a row the calls (of 1) and the head (2, one row) cost nothing, which moves the first op from 5 to 2.
        """
        plan = device_bound()
        likely, least, *_ = by_row(plan, 205_000 / 3)
        assert [step_of(plan, model) for model in (likely, least)] == pytest.approx([68.33, 68.33], rel=0.02)
        assert least.costs.duration_ns[plan.node_type != NodeType.OP] == pytest.approx([1_000] * 3, abs=30)

    def test_a_wall_above_the_step_changes_nothing(self):
        plan = host_bound()
        (model,) = by_row(plan, 120_000)
        assert (step_of(plan, model), model.rest_ns) == (100, 20_000)

    def test_a_wall_that_no_cost_explains(self):
        plan = device_bound()
        for model in by_row(plan, 50_000):
            assert model.rest_ns < -10_000
            assert step_of(plan, model) * 3 >= 180

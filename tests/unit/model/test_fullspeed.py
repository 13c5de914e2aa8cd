"""The host without the profiler: fits to a wall. Times in µs; traces as in test_retime.

Host-bound: the chain of the host is 10 + 4 + 96 + 4 + 86 = 200 for two steps. One row (the step's marker) begins in
the 10, one (the next marker) in the 96, none in the 86; each call counts one for its op.
"""

import pytest
from builders import TraceBuilder
from views import audit_of, view_of

from traceaudit.model.fullspeed import as_profiled, assumed, by_factor, by_row
from traceaudit.model.plan import plan_of
from traceaudit.model.retime import retime
from traceaudit.model.timeline import EdgeType, NodeType, timeline_of


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
    return retime(plan, model.costs) / 1000


class TestAsProfiled:
    def test_of_its_own_window_nothing_remains(self):
        plan = host_bound()
        model = as_profiled(plan, 100_000)
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
        """Wall 61 a step, 183: ops of 180, and 12 % of the gaps of 10, 10 and, back to the first, 5."""
        plan = device_bound()
        model = by_factor(plan, 61_000)
        assert step_of(plan, model) == pytest.approx(61, rel=2e-4)
        assert model.costs.lag_ns[plan.edge_type == EdgeType.STREAM] == pytest.approx([600, 1_200, 1_200], rel=0.02)

    def test_ops_never_shrink(self):
        """Wall 50: 180, 60 a step, is the least; what no model can remove is a negative rest."""
        plan = device_bound()
        model = by_factor(plan, 50_000)
        assert step_of(plan, model) == pytest.approx(60, rel=3e-4)
        assert model.rest_ns == pytest.approx(-10_000, abs=20)


class TestByRow:
    def test_every_row_cost_the_same(self):
        """Wall 90 a step, 20 less in all: at 6 a row the calls lose 4 each, all they have, the 96 lose 6, and so do
        the 86 and 10 on the way back.
        """
        plan = host_bound()
        models = by_row(plan, 90_000)
        for model in models:
            assert step_of(plan, model) == pytest.approx(90, rel=2e-4)
        calls = plan.node_type != NodeType.OP
        assert models[0].costs.duration_ns[calls].tolist() == [0, 0]
        assert models[0].costs.lag_ns[plan.edge_type == EdgeType.HOST] == pytest.approx([90_000, 90_000], abs=20)

    def test_where_the_device_bounds_the_step_a_range_of_costs_will_do(self):
        """Wall as profiled: any cost that leaves the host ahead of the device fits; the usual 2 us comes first.

        At 2 a row the calls (of 1) and the head (2, one row) cost nothing, which moves the first op from 5 to 2.
        """
        plan = device_bound()
        likely, least, *_ = by_row(plan, 205_000 / 3)
        assert [step_of(plan, model) for model in (likely, least)] == pytest.approx([68.33, 68.33], rel=0.02)
        assert least.costs.duration_ns[plan.node_type != NodeType.OP] == pytest.approx([1_000] * 3, abs=30)

    def test_no_row_costs_more_than_recording_can_unless_the_wall_needs_it(self):
        """The host, of 99 between two calls, hides behind ops of 200 at any cost; at 96 a row it would be gone."""
        trace = markers(0, 100, 200, end=300)
        for i, name in enumerate("abc"):
            trace.launch(at=100 * i + 2, dur=1).kernel(name, at=5 + 200 * i, dur=200)
        plan = planned(trace)
        names = [model.name for model in by_row(plan, 200_000)]
        assert names == [
            "every recorded row cost the host 2.0 µs",
            "the host was no slower than without the profiler",
            "every recorded row cost the host 20.0 µs",
        ]
        forced = by_row(host_bound(), 60_000)[0]
        assert forced.name.endswith("more than recording can cost, so that some of it has another cause")
        assert forced.row_cost_ns == pytest.approx(36_000, rel=0.01)

    def test_a_wall_above_the_step_changes_nothing(self):
        plan = host_bound()
        (model,) = by_row(plan, 120_000)
        assert (step_of(plan, model), model.rest_ns) == (100, 20_000)

    def test_a_wall_that_no_cost_explains(self):
        plan = device_bound()
        for model in by_row(plan, 50_000):
            assert model.rest_ns < -10_000
            assert step_of(plan, model) * 3 >= 180


def test_what_models_assume_is_named_once():
    """Wall as profiled, bound by the device: a row costs 2, nothing or 20; the host was not slowed, by any model."""
    trace = markers(0, 100, 200, end=300)
    for i, name in enumerate("abc"):
        trace.launch(at=100 * i + 2, dur=1).kernel(name, at=5 + 200 * i, dur=200)
    plan = planned(trace)
    models = [*by_row(plan, 200_000), by_factor(plan, 200_000), as_profiled(plan, 200_000)]
    assert assumed(models) == (
        "every recorded row cost the host 2.0 µs or 20.0 µs; or the host was no slower than without the profiler"
    )

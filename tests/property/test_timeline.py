"""The timeline graph, gaps, critical path and re-timing on random traces."""

import itertools

import networkx as nx
import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from stepped import stepped_traces
from views import audit_of, view_of

from traceaudit.analyses.gaps import find_gaps
from traceaudit.analyses.whatif import predict
from traceaudit.model.criticalpath import critical_path
from traceaudit.model.dependencies import EdgeType
from traceaudit.model.options import StepOptions, WhatIfOptions
from traceaudit.model.plan import plan_of
from traceaudit.model.retime import Costs, _Schedule, recorded_costs
from traceaudit.model.timeline import timeline_of


@given(stepped_traces())
def test_the_graph_has_no_cycle(trace):
    timeline = timeline_of(view_of(trace))
    graph = timeline.to_networkx()
    assert nx.is_directed_acyclic_graph(graph)
    assert len(graph) == len(timeline)
    position = np.argsort(timeline.order)
    assert (position[timeline.source] < position[timeline.target]).all()


@given(stepped_traces())
def test_slack_is_what_the_source_could_have_been_later_by(trace):
    """Launches and waits have slack of 0 or more: an op starts behind its launch, a wait returns behind its op.

    Queues may overlap (dependent launch), and so may the calls of a thread in a broken trace.
    """
    timeline = timeline_of(view_of(trace))
    firm = np.isin(timeline.edge_type, [EdgeType.LAUNCH, EdgeType.SYNC])
    assert (timeline.slack_ns[firm] >= 0).all()
    later = timeline.edge_type == EdgeType.SYNC
    begun = np.where(later, timeline.end_ns[timeline.target], timeline.start_ns[timeline.target])
    done = np.where(
        timeline.edge_type == EdgeType.LAUNCH, timeline.start_ns[timeline.source], timeline.end_ns[timeline.source]
    )
    assert (timeline.slack_ns == begun - done).all()


@given(stepped_traces(), st.integers(0, 200), st.integers(1, 400))
def test_a_critical_path_fills_any_window(trace, start, length):
    path = critical_path(timeline_of(view_of(trace)), start, start + length)
    assert path[0].start_ns == start
    assert path[-1].end_ns == start + length
    assert all(part.start_ns < part.end_ns for part in path)
    assert all(a.end_ns == b.start_ns for a, b in itertools.pairwise(path))


@given(stepped_traces())
def test_gaps_explain_all_idle_time(trace):
    """Results check that owners and causes sum to each gap and gaps to the idle time; queue depth is never negative."""
    view = view_of(trace)
    audit = audit_of(view)
    found = find_gaps(view, audit, StepOptions())
    assert sum(row.total_ns for row in found.gaps) == audit.ledger.accounts.idle
    assert sum(row.host_ns for row in found.gaps) == audit.ledger.accounts.idle_host
    assert sum(row.latency_ns for row in found.gaps) == audit.ledger.accounts.idle_latency
    assert found.queue_depth >= 0
    assert found.path.window_ns == sum(part.time_ns for part in found.path.parts)
    assert sum(found.host.shares[name].total_ns for name in found.host.shares) == found.host.interval_ns


def planned(trace):
    view = view_of(trace)
    plan = plan_of(timeline_of(view), audit_of(view))
    assume(plan is not None)
    return plan


@given(stepped_traces(), st.data())
def test_faster_is_never_later(trace, data):
    """Any ops, calls and lags of the host made shorter, by any amounts; after any number of rounds."""
    plan = planned(trace)
    shares, costs = st.floats(0, 1), recorded_costs(plan)
    duration = plan.duration_ns * data.draw(st.lists(shares, min_size=len(plan.node), max_size=len(plan.node)))
    lags = costs.lag_ns
    kept = np.array(data.draw(st.lists(shares, min_size=len(lags), max_size=len(lags))))
    shorter = np.where(lags > 0, lags * kept, lags)
    recorded = _Schedule(plan, costs)
    faster = _Schedule(plan, Costs(np.asarray(duration, np.float64), shorter, costs.delay_ns))
    slower = _Schedule(plan, Costs(plan.duration_ns * 2.0, lags, costs.delay_ns))
    for _ in range(4):
        ends = recorded.round()
        assert (faster.round() <= ends + 1e-6).all()
        assert (slower.round() >= ends - 1e-6).all()


@given(stepped_traces(), st.floats(0.3, 3))
def test_a_prediction_without_change_is_the_baseline(trace, share):
    """With a wall or without, whatever the profiler cost: only the share that no model explains is a rest."""
    view = view_of(trace)
    audit = audit_of(view)
    assume(audit.step.window_ns > 0)
    assume(plan_of(timeline_of(view), audit) is not None)
    wall_us = max(audit.step.window_ns * share, 1) / 1000
    for found in (
        predict(view, audit, WhatIfOptions()),
        predict(view, audit_of(view, wall_us=wall_us), WhatIfOptions()),
    ):
        for step in (found.predicted_ns, found.low_ns, found.high_ns, found.naive_ns):
            assert abs(step - found.baseline_ns) <= 1e-6 * found.baseline_ns

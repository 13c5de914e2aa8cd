"""Laws of the ledger on random traces: against the slow reference, and under changes that must not matter."""

import copy
import itertools

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from reference import assert_same_ledger, reference_of
from renderers import document, dump
from stepped import SHORT, stepped_traces
from views import audit_of, read_text, text_of, trace_of, view_of

from traceaudit.model.results import Accounts, Totals


@given(stepped_traces())
@settings(max_examples=300)
def test_the_ledger_is_that_of_the_slow_reference(trace):
    assert_same_ledger(audit_of(trace), reference_of(text_of(trace)))


@given(stepped_traces(markers=False))
def test_time_is_conserved_whatever_the_source_of_steps(trace):
    """Steps from launches, cycles or none: results check their own sums, windows touch and hold what the items say."""
    audit = audit_of(trace)
    items = audit.steps.items
    assert all(a.start_ns + a.window_ns == b.start_ns for a, b in itertools.pairwise(items))
    used = [item for item in items if item.used]
    total = Accounts()
    for item in used:
        total = total.plus(item.accounts)
    assert total == audit.ledger.accounts
    assert sum(item.window_ns for item in used) == audit.ledger.window_ns
    assert sum(item.device_ops for item in items) <= audit.totals.device_ops


@given(stepped_traces(), st.integers(-(10**9), 10**9))
def test_a_shift_in_time_changes_nothing(trace, shift):
    moved = copy.deepcopy(trace)
    for row in (*moved.ops, *moved.host):
        row.start_ns += shift
    moved.overheads = [(name, start + shift, dur) for name, start, dur in moved.overheads]
    moved.syncs = [(name, start + shift, *rest) for name, start, *rest in moved.syncs]
    assert audit_of(moved) == audit_of(trace)


@given(stepped_traces(), st.randoms(use_true_random=False))
def test_the_order_of_the_events_changes_nothing(trace, random):
    made = document(trace, "kineto-2.6")
    random.shuffle(made.events)
    assert without_ties(audit_of(read_text(dump(made)))) == without_ties(audit_of(trace))


def without_ties(audit):
    """Leave out what the order of rows with equal times decides: which of two annotations lies inside the other."""
    return audit.totals, audit.steps, audit.ledger.accounts, audit.ledger.idle_by_position, audit.host.sync_ns


@given(stepped_traces(), st.integers(1, 10**6))
def test_other_ids_change_nothing(trace, offset):
    """Correlations, streams, threads and processes by other numbers."""
    renamed = copy.deepcopy(trace)
    for op in renamed.ops:
        op.correlation += offset
        op.stream += offset
    for row in renamed.host:
        row.correlation += offset if row.correlation else 0
        row.thread += offset
    assert audit_of(renamed) == audit_of(trace)


@given(stepped_traces(times=SHORT), st.integers(2, 9))
def test_all_times_scaled_scale_the_ledger(trace, factor):
    """Only the floor of pending ops (250 us) is a time of its own, so nothing here comes near it."""
    scaled = copy.deepcopy(trace)
    for row in (*scaled.ops, *scaled.host):
        row.start_ns *= factor
        row.dur_ns *= factor
    scaled.overheads = [(name, start * factor, dur * factor) for name, start, dur in scaled.overheads]
    scaled.syncs = [(name, start * factor, dur * factor, *rest) for name, start, dur, *rest in scaled.syncs]
    one, many = audit_of(trace), audit_of(scaled)
    assert many.ledger.window_ns == factor * one.ledger.window_ns
    for sums in ("accounts", "idle_latency_by", "idle_by_position"):
        assert parts(getattr(many.ledger, sums)) == [factor * part for part in parts(getattr(one.ledger, sums))]
    assert many.ledger.idle_host_by == {name: factor * time for name, time in one.ledger.idle_host_by.items()}
    assert [item.used for item in many.steps.items] == [item.used for item in one.steps.items]


def parts(sums):
    return [getattr(sums, name) for name in sums.__dataclass_fields__]


@given(stepped_traces(), st.data())
def test_one_op_or_two_that_touch_are_equally_busy(trace, data):
    whole = view_of(trace).totals
    index = data.draw(st.integers(0, len(trace.ops) - 1))
    op = trace.ops[index]
    at = data.draw(st.integers(0, op.dur_ns))
    rest = copy.deepcopy(op)
    rest.name, rest.start_ns, rest.dur_ns = op.name + " rest", op.start_ns + at, op.dur_ns - at
    op.dur_ns = at
    trace.ops.append(rest)
    split = view_of(trace).totals
    assert split == Totals(
        device_ops=whole.device_ops + 1,
        op_time_ns=whole.op_time_ns,
        busy_ns=whole.busy_ns,
        span_ns=whole.span_ns,
        gaps=whole.gaps,
    )


@given(stepped_traces(), st.integers(0, 200), st.integers(0, 200))
def test_one_more_op_is_never_less_busy(trace, at, length):
    before = view_of(trace).totals
    trace.orphan().kernel("one more", at=f"{at / 1000:.3f}", dur=f"{length / 1000:.3f}", stream=99)
    trace.annotation("end of capture", at="2.000", dur="0.001", thread=3)
    after = view_of(trace).totals
    assert before.busy_ns <= after.busy_ns <= before.busy_ns + length
    assert after.op_time_ns == before.op_time_ns + length


@given(stepped_traces())
def test_the_tables_stay_as_they_are(trace):
    """Analyses mutate nothing: columns are locked, and a second audit says the same."""
    read_once = trace_of(trace)
    assert audit_of(view_of(read_once)) == audit_of(view_of(read_once))
    assert not read_once.ops.start_ns.flags.writeable


@pytest.mark.parametrize("account", Accounts.__dataclass_fields__)
def test_the_strategy_reaches_every_account(account):
    """Laws of traces that no rule has anything to say about would prove little."""
    any_will_do = settings(phases=[Phase.generate], max_examples=1000, database=None)
    found = find(
        stepped_traces(), lambda trace: getattr(audit_of(trace).ledger.accounts, account) > 0, settings=any_will_do
    )
    assert found.ops

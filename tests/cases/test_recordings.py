"""Every recording against the slow reference, to the nanosecond."""

from collections import Counter
from pathlib import Path

import pytest
from reference import assert_same_ledger, reference_of

from traceaudit import audit
from traceaudit.model.options import ReconcileOptions

TRACES = Path(__file__).parents[2] / "traces"
RECORDINGS = sorted(path.relative_to(TRACES).as_posix() for path in TRACES.rglob("*.json.gz"))


def test_there_are_recordings():
    assert len(RECORDINGS) >= 20


@pytest.mark.parametrize("name", RECORDINGS)
def test_ledger_is_that_of_the_slow_reference(name):
    expected = reference_of(TRACES / name)
    (device,) = audit.reconcile(str(TRACES / name), ReconcileOptions()).devices
    assert_same_ledger(device, expected)


@pytest.mark.parametrize("model", ["dense", "moe", "compiled", "inductor"])
def test_gaps_and_ledger_hold_the_same_against_the_host(model):
    """One thread launches: what is exposed of it is the host cost, cause by cause; allocation is another API."""
    path = str(TRACES / f"transformers/{model}.json.gz")
    (device,) = audit.gaps(path, ReconcileOptions()).devices
    (reconciled,) = audit.reconcile(path, ReconcileOptions()).devices
    ledger = reconciled.ledger
    exposed = Counter({name: share.exposed_ns for name, share in device.host.shares.items()})
    exposed["other_api"] += exposed.pop("memory")
    owed = Counter(ledger.idle_host_by)
    owed["launch_api"] += ledger.idle_latency_by.launch_call
    assert +exposed == +owed
    assert exposed.total() == ledger.host_cost_ns

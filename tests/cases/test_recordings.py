"""Every recording against the slow reference, to the nanosecond."""

from pathlib import Path

import pytest
from reference import ACCOUNTS, reference_of

from traceaudit import audit
from traceaudit.model.options import ReconcileOptions

TRACES = Path(__file__).parents[2] / "traces"
RECORDINGS = sorted(path.relative_to(TRACES).as_posix() for path in TRACES.rglob("*.json.gz"))


def test_there_are_recordings():
    assert len(RECORDINGS) >= 20


@pytest.mark.parametrize("name", RECORDINGS)
def test_ledger_is_that_of_the_slow_reference(name):
    path = str(TRACES / name)
    expected = reference_of(path)
    (device,) = audit.reconcile(path, ReconcileOptions()).devices
    assert {key: getattr(device.totals, key) for key in expected.totals} == expected.totals
    assert device.steps.source == expected.source
    found = [(item.name, item.start_ns, item.window_ns, item.device_ops, item.used) for item in device.steps.items]
    assert found == [
        (step.name, step.window[0], step.window[1] - step.window[0], len(step.ops), step.used)
        for step in expected.steps
    ]
    for item, step in zip(device.steps.items, expected.steps, strict=True):
        assert {account: getattr(item.accounts, account) for account in ACCOUNTS} == {
            account: step.accounts[account] for account in ACCOUNTS
        }
    ledger = device.ledger
    assert ledger.window_ns == expected.window
    assert {account: getattr(ledger.accounts, account) for account in ACCOUNTS} == expected.accounts
    assert {part: getattr(ledger.idle_latency_by, part) for part in expected.latency_by} == expected.latency_by
    assert dict(ledger.idle_host_by) == expected.host_by
    assert {part: getattr(ledger.idle_by_position, part) for part in expected.position} == expected.position

"""Every recording against the slow reference, to the nanosecond."""

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

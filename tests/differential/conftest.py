"""Both sides on the same bytes."""

import logging

import pytest
from differential.theirs import HtaDiffers, Theirs

from traceaudit import audit, ingest
from traceaudit.model.options import ReconcileOptions


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def theirs(tmp_path):
    """Let HTA read some bytes."""

    def read(data, **options):
        return Theirs(data, tmp_path, **options)

    return read


@pytest.fixture
def ours(tmp_path):
    """Audit some bytes."""

    def reconcile(data, options=None):
        path = tmp_path / "ours.json"
        path.write_bytes(data)
        return audit.reconcile(str(path), options or ReconcileOptions())

    return reconcile


@pytest.fixture
def tables(tmp_path):
    """Read some bytes."""

    def read(data):
        path = tmp_path / "ours.json"
        path.write_bytes(data)
        return ingest.read(str(path))

    return read


@pytest.fixture
def compare():
    """Check our number and HTA's known one, and end in the expected failure if HTA's is not the right one."""

    def check(mine, hta, *, right, known):
        assert mine == right
        assert hta in (right, known), "HTA gives a third number: it changed"
        if hta != right:
            raise HtaDiffers(f"HTA says {hta}, right is {right}")

    return check

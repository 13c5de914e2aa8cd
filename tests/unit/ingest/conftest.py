"""Fixtures of the ingest tests."""

import pytest

from traceaudit.ingest import read


@pytest.fixture
def read_data(tmp_path):
    """Write bytes to a file and read them as a trace."""

    def run(data, name="trace.json", **options):
        path = tmp_path / name
        path.write_bytes(data)
        return read(str(path), **options)

    return run

"""The innermost row of a thread against a search through all rows at every instant."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.model.hoststack import stretches

ROWS = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 12)), max_size=12)


@given(ROWS)
def test_the_open_row_that_began_last_decides(rows: list[tuple[int, int]]) -> None:
    ordered = sorted(((start, start + length) for start, length in rows), key=lambda row: (row[0], -row[1]))
    start = np.array([row[0] for row in ordered], np.int64)
    end = np.array([row[1] for row in ordered], np.int64)
    found = stretches(start, end)
    for instant in range(40):
        position = int(np.searchsorted(found.edge, instant, "right")) - 1
        open_rows = [i for i, (a, b) in enumerate(ordered) if a <= instant < b]
        expected = max(open_rows, default=-1)
        assert (int(found.row[position]) if position >= 0 else -1) == expected

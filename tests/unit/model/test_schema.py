"""Tables: equally long, typed, locked."""

from dataclasses import fields

import numpy as np
import pytest

from traceaudit.model.schema import TABLES, Overheads, Threads


def threads():
    return Threads.of(rank=[0, 1, 2], pid=[5, 6, 7], tid=[8, 9, 10])


def test_columns_have_the_declared_types():
    assert threads().rank.dtype == np.int32
    assert Overheads.of(start_ns=[1], end_ns=[2], name=[0], rank=[0]).start_ns.dtype == np.int64


def test_columns_are_locked():
    with pytest.raises(ValueError, match="read-only"):
        threads().rank[0] = 3


def test_another_type_is_refused():
    column = np.zeros(1, np.int64)
    with pytest.raises(TypeError, match=r"Threads.rank is int64, not int32"):
        Threads(rank=column, pid=column.astype(np.int32), tid=column.astype(np.int32))


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match=r"columns of Threads differ in length: \[1, 2\]"):
        Threads.of(rank=[0], pid=[1, 2], tid=[3, 4])


@pytest.mark.parametrize("table", TABLES)
def test_an_empty_table_has_every_column_and_no_row(table):
    empty = table.empty()
    assert len(empty) == 0
    assert list(empty.df.columns) == [item.name for item in fields(table)]


def test_rows_are_taken_by_position_and_by_mask():
    assert threads().take(np.array([2, 0])).pid.tolist() == [7, 5]
    assert threads().take(np.array([False, True, False])).tid.tolist() == [9]


def test_a_replaced_column_leaves_the_table_as_it_was():
    table = threads()
    other = table.replace(rank=np.array([7, 7, 7], np.int32))
    assert (other.rank.tolist(), other.pid.tolist()) == ([7, 7, 7], [5, 6, 7])
    assert table.rank.tolist() == [0, 1, 2]


def test_a_frame_shares_the_values():
    assert threads().df.to_dict("list") == {"rank": [0, 1, 2], "pid": [5, 6, 7], "tid": [8, 9, 10]}

"""The op around a launch, against looking at every row."""

import numpy as np
from builders import TraceBuilder
from hypothesis import given
from hypothesis import strategies as st
from views import view_of

from traceaudit.model.enclosing import enclosing_rows
from traceaudit.model.schema import HostCategory

rows = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(1, 2)), max_size=12)


@given(rows, st.lists(st.tuples(st.integers(0, 90), st.integers(1, 2)), min_size=1, max_size=6))
def test_the_op_that_began_last_among_those_open(ops, launches):
    made = TraceBuilder()
    for start, dur, thread in ops:
        made.op("aten::op", at=start, dur=dur, thread=thread)
    for start, thread in launches:
        made.launch(at=start, dur=1, thread=thread).kernel(at=200 + start, dur=1)
    view = view_of(made)
    found = enclosing_rows(view.trace, view.ops, HostCategory.CPU_OP)
    host = view.trace.host
    for op, row in enumerate(found.innermost.tolist()):
        launch = int(view.ops.launch[op])
        at, thread = host.start_ns[launch], host.thread[launch]
        open_rows = [
            other
            for other in np.flatnonzero(host.category == HostCategory.CPU_OP).tolist()
            if host.thread[other] == thread and host.start_ns[other] <= at < host.end_ns[other]
        ]
        assert (row >= 0) == bool(open_rows)
        if open_rows:
            latest = max(host.start_ns[other] for other in open_rows)
            assert host.start_ns[row] == latest
            assert row in open_rows

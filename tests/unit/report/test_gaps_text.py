"""What reports of gaps say about the host."""

import json

import pytest

from traceaudit.model.findings import Verdict
from traceaudit.model.results import Completeness
from traceaudit.model.results.gaps import (
    CriticalPath,
    DeviceGaps,
    GapReport,
    HostLedger,
    HostShare,
    Limit,
    OtherThread,
    ShortGaps,
)
from traceaudit.report import render

MS = 1_000_000


def report(*others):
    """Return two steps of 8 ms: thread 1 is exposed for 2 ms, the others as given."""
    cost_ns = 2 * MS + sum(one.exposed_ns for one in others)
    shares = {"framework": HostShare(10 * MS, 2 * MS), "unrecorded": HostShare(6 * MS, 0)}
    device = DeviceGaps(
        rank=0,
        device=0,
        name=None,
        steps_used=2,
        window_ns=16 * MS,
        idle_ns=0,
        verdict=Limit.MIXED,
        shares={},
        gaps=(),
        host=HostLedger("1", 16 * MS, cost_ns, shares, others),
        short=ShortGaps(10_000, 0, 0, 0, 0),
        queue_depth=0.0,
        path=CriticalPath(0, 0, ()),
    )
    return GapReport((), "t.json", Completeness(Verdict.COMPLETE, ()), (device,))


def host_rows(form, *others):
    """Return the rows of the host's table, below its head."""
    rows = [line.replace("|", " ").split(maxsplit=2) for line in render("gaps", form, report(*others)).splitlines()]
    begin = next(i for i, row in enumerate(rows) if row[:2] == ["total", "exposed"])
    return [[cell.strip() for cell in row] for row in rows[begin + 1 :] if row and row[0] != "---:"]


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_one_launching_thread(form):
    assert host_rows(form) == [["5.000", "1.000", "framework dispatch"], ["3.000", "0.000", "unrecorded host time"]]


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_other_launching_threads_follow_and_are_folded_after_three(form):
    """Of two steps: 6, 4, 2, 0.8 and 0.6 ms."""
    times = (6_000_000, 4_000_000, 2_000_000, 800_000, 600_000)
    others = [OtherThread(str(i), time) for i, time in enumerate(times, start=2)]
    assert host_rows(form, *others)[2:] == [
        ["-", "3.000", "other launching thread 2"],
        ["-", "2.000", "other launching thread 3"],
        ["-", "1.000", "other launching thread 4"],
        ["-", "0.700", "2 more launching threads"],
    ]


def test_json_names_them_all():
    others = [OtherThread(str(i), MS) for i in range(2, 8)]
    host = json.loads(render("gaps", "json", report(*others)))["devices"][0]["host"]
    assert host["host_cost_ns"] == 8 * MS
    assert host["other_threads"] == [{"thread": str(i), "exposed_ns": MS} for i in range(2, 8)]

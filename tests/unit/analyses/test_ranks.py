"""Ranks of one run. Times in µs; every expected number is derived in the test that uses it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from traceaudit.analyses.ranks import compare_ranks, spinning_alone
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.schema import Collectives, DeviceOps, HostRows, Kind, OpType, Overheads, Syncs, Threads
from traceaudit.model.trace import Trace, TraceSource

US = 1_000
BASE = 1_767_225_600_000_000_000


class Op(NamedTuple):
    """A device op: a collective of so many elements, a kernel without metadata (`elements` None), or compute."""

    start: float
    dur: float
    elements: int | None = 1024
    what: str = "allreduce"
    group: str = "0"
    size: int = -1
    kind: Kind = Kind.COMM
    device: int = 0
    rank: int | None = None
    grid: int = 8


def a_trace(
    rank: int, ops: Sequence[Op], *, origin: int | None = BASE, world: int | None = None, ranks: tuple[int, ...] = ()
) -> Trace:
    names = sorted({op.what for op in ops} | {op.group for op in ops})
    calls = sorted({(op.what, op.group, op.elements, op.size) for op in ops if op.elements is not None})
    count = len(ops)
    start = np.array([round(op.start * US) for op in ops], np.int64)
    columns = dict.fromkeys(("stream", "correlation", "launch", "graph", "graph_node", "copied"), np.full(count, -1))
    columns |= dict.fromkeys(("grid_y", "grid_z", "block_y", "block_z"), np.ones(count))
    columns |= dict.fromkeys(("registers", "shared_mem", "kind_rule", "clipped_ns"), np.zeros(count))
    table = DeviceOps.of(
        **columns,
        start_ns=start,
        end_ns=start + np.array([round(op.dur * US) for op in ops], np.int64),
        name=[names.index(op.what) for op in ops],
        op_type=[OpType.KERNEL] * count,
        kind=[op.kind for op in ops],
        rank=[rank if op.rank is None else op.rank for op in ops],
        device=[op.device for op in ops],
        grid_x=[op.grid for op in ops],
        block_x=[256 if op.grid > 0 else -1 for op in ops],
        collective=[
            -1 if op.elements is None else calls.index((op.what, op.group, op.elements, op.size)) for op in ops
        ],
    )
    collectives = Collectives.of(
        name=[names.index(what) for what, _, _, _ in calls],
        group=[names.index(group) for _, group, _, _ in calls],
        dtype=[-1] * len(calls),
        in_elements=[elements for _, _, elements, _ in calls],
        out_elements=[elements for _, _, elements, _ in calls],
        group_size=[size for _, _, _, size in calls],
    )
    return Trace(
        TraceSource(f"rank{rank}.json", count, 0, None, 1, origin, {}, {}, None),
        tuple(names),
        (),
        table,
        HostRows.empty(),
        Threads.empty(),
        Syncs.empty(),
        Overheads.empty(),
        collectives,
        (),
        ranks or (rank,),
        world,
        None,
        (),
    )


def of(findings: Sequence[Finding], code: str) -> list[Finding]:
    return [finding for finding in findings if finding.code == code]


def codes(findings: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def late_rank() -> list[Trace]:
    """Two ranks on one clock, two all-reduces of one size; rank 1 reaches the first one 212 310.791 µs late.

    ::

        rank 0   |compute 850|  all-reduce 214 115.415 ............ | 1 790 |
        rank 1   |compute 850|                        | 1 804.624   | 1 785 |
                 100         1 000                213 310.791  215 115.415  217 090
    """
    first = [
        Op(100, 850, None, "gemm", kind=Kind.COMPUTE),
        Op(1_000, 214_115.415, 67_108_864, size=2),
        Op(215_300, 1_790, 67_108_864, size=2),
    ]
    second = [
        Op(100, 850, None, "gemm", kind=Kind.COMPUTE),
        Op(213_310.791, 1_804.624, 67_108_864, size=2),
        Op(215_305, 1_785, 67_108_864, size=2),
    ]
    return [a_trace(0, first, world=2), a_trace(1, second, world=2)]


def test_a_rank_that_arrives_late_makes_the_other_spin() -> None:
    findings = compare_ranks(late_rank())
    assert codes(findings) == ["spinning_collective", "rank_skew"]
    spinning, skew = findings
    # 214 115.415 - 1 804.624 in the first, 1 790 - 1 785 in the second.
    assert (spinning.rank, spinning.impact_ns, spinning.count) == (0, 212_310_791 + 5_000, 2)
    assert (skew.rank, skew.impact_ns, skew.count) == (1, 212_315_791, 2)


def test_without_its_peer_a_rank_spins_against_its_siblings() -> None:
    alone = late_rank()[0]
    [missing, spinning] = compare_ranks([alone])
    assert (missing.code, missing.severity, missing.count, missing.rank) == ("rank_missing", Severity.INFO, 1, 1)
    # 214 115.415 beyond its only sibling of 1 790.
    assert (spinning.code, spinning.rank, spinning.impact_ns) == ("spinning_collective", 0, 212_325_415)
    assert spinning_alone(alone) == (spinning,)


def test_the_late_rank_alone_shows_nothing() -> None:
    assert spinning_alone(late_rank()[1]) == ()


def wrong_clock(ranks: Sequence[int] = (0, 1, 2, 3)) -> list[Trace]:
    """One all-reduce of four ranks, all ending at 400 but on rank 3, whose clock is 2 000 µs ahead.

    Their tables begin at different moments, so only origin plus time may be compared.
    """
    starts = {0: (0, 400), 1: (50, 350), 2: (100, 300), 3: (2_080, 320)}
    origins = {0: 0, 1: 3_600_000 * US, 2: -7 * US, 3: 0}
    return [
        a_trace(
            rank,
            [Op(starts[rank][0] - origins[rank] / US, starts[rank][1], size=4)],
            origin=BASE + origins[rank],
            world=4,
        )
        for rank in ranks
    ]


def test_the_majority_tells_whose_clock_is_off() -> None:
    [clock] = compare_ranks(wrong_clock())
    assert (clock.code, clock.rank, clock.impact_ns, clock.count) == ("rank_clock_offset", 3, 2_000_000, 1)
    assert clock.severity is Severity.WARNING


def test_a_clock_may_be_behind() -> None:
    traces = [a_trace(rank, [Op(start, 300)]) for rank, start in enumerate((5_000, 5_000, 1_000))]
    [clock] = compare_ranks(traces)
    assert (clock.rank, clock.impact_ns) == (2, 4_000_000)
    assert "behind" in clock.message


def test_two_ranks_alone_do_not_tell_whose_clock_is_off() -> None:
    [missing, clock] = compare_ranks(wrong_clock((0, 3)))
    assert missing.code == "rank_missing"
    assert (clock.code, clock.rank, clock.impact_ns) == ("rank_clock_offset", None, 2_000_000)


def test_a_wrong_clock_is_reported_once_whatever_groups_the_rank_is_in() -> None:
    """Rank 2 is 2 000 µs ahead in the group of all, and against rank 0 alone, where no majority would tell."""
    traces = [a_trace(rank, [Op(0, 100), Op(900, 100, group="tp")]) for rank in (0, 1)]
    traces.append(a_trace(2, [Op(2_000, 100), Op(2_900, 100, group="tp")]))
    traces[1] = a_trace(1, [Op(0, 100)])
    [clock] = compare_ranks(traces)
    assert (clock.rank, clock.impact_ns, clock.count) == (2, 2_000_000, 1)


def test_ranks_that_are_absent() -> None:
    [missing] = compare_ranks(wrong_clock((0, 1)))
    assert (missing.code, missing.severity, missing.count, missing.rank) == ("rank_missing", Severity.WARNING, 2, None)
    assert "2 of 4" in missing.message
    assert missing.message.endswith("2, 3")


def test_a_folder_with_one_file_lacks_the_others() -> None:
    [missing] = compare_ranks(wrong_clock((2,)), folder=True)
    assert (missing.severity, missing.count) == (Severity.WARNING, 3)


def test_many_absent_ranks_are_counted() -> None:
    [missing] = compare_ranks([a_trace(0, [Op(0, 1)], world=128)])
    assert missing.count == 127
    assert missing.message.endswith("1, 2, 3, 4, 5, 6, 7, 8, …")


def test_one_file_may_hold_all_ranks() -> None:
    ops = [Op(0, 2_000, rank=0, size=2), Op(1_500, 500, rank=1, size=2)]
    findings = compare_ranks([a_trace(0, ops, world=2, ranks=(0, 1))])
    assert [(finding.code, finding.rank, finding.impact_ns) for finding in findings] == [
        ("spinning_collective", 0, 1_500_000),
        ("rank_skew", 1, 1_500_000),
    ]


@pytest.mark.parametrize("what", ["broadcast", "send", "all_to_allv"])
def test_what_need_not_wait_for_everyone_is_not_compared(what: str) -> None:
    """A broadcast's root may end before others begin: neither a wrong clock nor waiting."""
    traces = [a_trace(0, [Op(0, 100, what=what)]), a_trace(1, [Op(5_000, 9_000, what=what)])]
    assert compare_ranks(traces) == ()


def test_collectives_of_other_sizes_or_groups_are_no_peers() -> None:
    traces = [
        a_trace(0, [Op(0, 9_000, 1)]),
        a_trace(1, [Op(20_000, 100, 2)]),
        a_trace(2, [Op(20_000, 100, 1, group="1")]),
    ]
    assert compare_ranks(traces) == ()


def test_more_ranks_than_the_group_has_are_several_groups() -> None:
    traces = [
        a_trace(rank, [Op(start, dur, size=2)]) for rank, start, dur in ((0, 0, 100), (1, 0, 100), (2, 900, 9_000))
    ]
    assert compare_ranks(traces) == ()


def test_files_of_one_rank_are_not_peers() -> None:
    """Repeated runs, or files that name no rank: the second run is no late rank of the first."""
    assert compare_ranks([a_trace(0, [Op(0, 9_000)]), a_trace(0, [Op(50_000, 100)])]) == ()


def test_captures_that_begin_apart_are_matched_by_their_ends() -> None:
    """Rank 1 misses the first of four collectives: matched by order, it would seem 10 ms behind.

    ::

        rank 0   |  1000 |   | 500  |  | 5 000   |  | 700 |      ends 1 000  11 300  25 000  31 000
        rank 1               |  500 |     | 1 000|  | 700 |      ends        11 300  25 000  31 000
    """
    first = a_trace(0, [Op(0, 1_000), Op(10_800, 500), Op(20_000, 5_000), Op(30_300, 700)])
    second = a_trace(1, [Op(10_800, 500), Op(24_000, 1_000), Op(30_300, 700)])
    findings = compare_ranks([first, second])
    assert [(finding.code, finding.rank, finding.impact_ns) for finding in findings] == [
        ("spinning_collective", 0, 4_000_000),
        ("rank_skew", 1, 4_000_000),
    ]


def test_captures_that_begin_apart_need_absolute_times() -> None:
    first = a_trace(0, [Op(0, 1_000), Op(10_800, 5_000)], origin=None)
    second = a_trace(1, [Op(10_800, 500)])
    assert compare_ranks([first, second]) == ()


@pytest.mark.parametrize(("spare", "waiting"), [(256, 895_000), (257, None)])
def test_captures_may_begin_256_collectives_apart(spare: int, waiting: int | None) -> None:
    """The last of rank 0 ends with the only one of rank 1, at 5 000, and takes 900 where that takes 5."""
    first = a_trace(0, [*(Op(index * 10, 5) for index in range(spare)), Op(4_100, 900)])
    findings = compare_ranks([first, a_trace(1, [Op(4_995, 5)])])
    assert [finding.impact_ns for finding in of(findings, "spinning_collective")] == ([waiting] if waiting else [])


def test_unlike_captures_accuse_no_clock() -> None:
    """Ends 0 to 3 s apart, each time by another amount: no offset makes these collectives meet."""
    first = a_trace(0, [Op(index * 1_000_000, 300) for index in range(4)])
    second = a_trace(1, [Op(index * 2_000_000, 9_000) for index in range(4)])
    assert compare_ranks([first, second]) == ()


def test_waiting_needs_no_clock() -> None:
    traces = [a_trace(0, [Op(0, 2_000)], origin=None), a_trace(1, [Op(7, 500)], origin=None)]
    assert codes(compare_ranks(traces)) == ["spinning_collective", "rank_skew"]


@pytest.mark.parametrize(
    ("wait", "transfer", "compute", "spins"),
    [
        (249, 100, 0, False),  # below 250 µs
        (250, 100, 0, True),
        (900, 9_100, 0, False),  # below a tenth of 10 000 in the collective
        (1_000, 9_000, 0, True),
        (900, 100, 50_000, False),  # below a 50th of 51 000
        (1_100, 100, 50_000, True),
    ],
)
def test_floors_of_waiting(wait: float, transfer: float, compute: float, *, spins: bool) -> None:
    waiting = [Op(0, compute, None, "gemm", kind=Kind.COMPUTE), Op(compute, wait + transfer)]
    late = [Op(compute + wait, transfer)]
    findings = compare_ranks([a_trace(0, waiting), a_trace(1, late)])
    assert [finding.rank for finding in of(findings, "spinning_collective")] == ([0] if spins else [])


def test_ranks_that_are_late_in_turn_are_not_skewed() -> None:
    first = a_trace(0, [Op(0, 2_000), Op(11_000, 1_000)])
    second = a_trace(1, [Op(1_000, 1_000), Op(10_000, 2_000)])
    findings = compare_ranks([first, second])
    assert [(finding.code, finding.rank) for finding in findings] == [
        ("spinning_collective", 0),
        ("spinning_collective", 1),
    ]


def test_kernels_without_metadata_meet_where_their_ends_agree() -> None:
    """Of three all-reduces in a graph the ends of two agree (2 000, 6 000); the third is of another group."""
    kernel = "vllm::cross_device_reduce_1stage"
    first = a_trace(0, [Op(0, 2_000, None, kernel), Op(5_000, 1_000, None, kernel), Op(9_000, 100, None, kernel)])
    second = a_trace(1, [Op(1_990, 10, None, kernel), Op(5_990, 10, None, kernel), Op(9_900, 100, None, kernel)])
    findings = compare_ranks([first, second])
    assert [(finding.code, finding.rank, finding.impact_ns) for finding in findings] == [
        ("spinning_collective", 0, 1_990_000 + 990_000),
        ("rank_skew", 1, 2_980_000),
    ]


def test_kernels_without_metadata_follow_the_clocks_of_those_with_it() -> None:
    """Rank 2 is 5 000 µs ahead by its all-reduce; less that, its kernel ends at 2 000 as well, after 10 of waiting."""
    kernel = "multimem_all_reduce_kernel"
    ops = {0: [Op(0, 2_000, None, kernel), Op(3_000, 50)], 1: [Op(0, 2_000, None, kernel), Op(3_000, 50)]}
    ops[2] = [Op(6_990, 10, None, kernel), Op(8_000, 50)]
    findings = compare_ranks([a_trace(rank, rows) for rank, rows in ops.items()])
    assert [(finding.code, finding.rank, finding.impact_ns) for finding in findings] == [
        ("rank_clock_offset", 2, 5_000_000),
        ("spinning_collective", 0, 1_990_000),
        ("spinning_collective", 1, 1_990_000),
        ("rank_skew", 2, 1_990_000),
    ]


@pytest.mark.parametrize("origin", [BASE, None])
def test_kernels_without_metadata_that_never_meet_say_nothing(origin: int | None) -> None:
    kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    first = a_trace(0, [Op(0, 2_000, None, kernel)], origin=origin)
    assert compare_ranks([first, a_trace(1, [Op(4_000, 100, None, kernel)], origin=origin)]) == ()


@pytest.mark.parametrize(
    ("durations", "impact"),
    [
        ([100, 100, 100, 1_001], 901),  # over 10 x 100 and over 1 000
        ([100, 100, 100, 1_000], None),  # not over 1 000
        ([200, 200, 200, 2_000], None),  # not over 10 x 200
        ([10, 10, 10, 900], None),  # short in itself
        ([100, 5_000, 6_000], 4_900 + 5_900),  # most of them wait
        ([5_000], None),  # no sibling
    ],
)
def test_siblings(durations: list[float], impact: float | None) -> None:
    findings = spinning_alone(a_trace(0, [Op(index * 10_000, dur) for index, dur in enumerate(durations)]))
    assert [finding.impact_ns for finding in findings] == ([] if impact is None else [impact * US])


def test_kernels_of_other_sizes_are_no_siblings() -> None:
    assert spinning_alone(a_trace(0, [Op(0, 100, 1), Op(10_000, 5_000, 2)])) == ()
    kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    assert (
        spinning_alone(a_trace(0, [Op(0, 100, None, kernel, grid=2), Op(10_000, 5_000, None, kernel, grid=24)])) == ()
    )
    assert spinning_alone(a_trace(0, [Op(0, 100, None, kernel), Op(10_000, 5_000, None, kernel)])) != ()


@pytest.mark.parametrize(("short", "found"), [(8, False), (9, True)])
@pytest.mark.parametrize(
    ("kernel", "grid"), [("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", 8), ("mscclKernel_Sum", -1)]
)
def test_kernels_of_any_size_are_judged_only_where_long_ones_are_rare(
    kernel: str, grid: int, short: int, *, found: bool
) -> None:
    ops = [Op(index * 1_000, 100, None, kernel, grid=grid) for index in range(short)]
    ops.append(Op(20_000, 9_000, None, kernel, grid=grid))
    assert bool(spinning_alone(a_trace(0, ops))) is found


def test_compute_is_never_accused() -> None:
    ops = [Op(index * 10_000, dur, None, "gemm", kind=Kind.COMPUTE) for index, dur in enumerate((10, 10, 9_000))]
    assert spinning_alone(a_trace(0, ops)) == ()
    assert compare_ranks([a_trace(0, ops), a_trace(1, ops)]) == ()


def test_the_worst_kernel_is_the_example() -> None:
    ops = [
        Op(0, 100, 1),
        Op(10_000, 3_000, 1),
        Op(20_000, 100, 1, "_allgather_base"),
        Op(30_000, 7_000, 1, "_allgather_base"),
    ]
    [finding] = spinning_alone(a_trace(3, ops))
    assert (finding.rank, finding.count, finding.impact_ns) == (3, 2, 2_900_000 + 6_900_000)
    assert finding.examples == ("_allgather_base: 6.900 ms beyond its siblings",)


def test_no_traces_no_findings() -> None:
    assert compare_ranks([]) == ()


def test_nothing_depends_on_where_time_begins() -> None:
    for shift in (-3, 10**9):
        moved = [
            a_trace(
                index,
                [
                    Op(int(start) / US + shift, int(end - start) / US, 67_108_864, size=2)
                    for start, end in zip(trace.ops.start_ns[1:], trace.ops.end_ns[1:], strict=True)
                ],
                origin=BASE - shift * US,
                world=2,
            )
            for index, trace in enumerate(late_rank())
        ]
        assert [finding.impact_ns for finding in compare_ranks(moved)] == [212_315_791, 212_315_791]

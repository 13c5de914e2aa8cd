"""The bound on kernel work, the choice of fixes, and the choice of the step time, on results built by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import samples
import serverlogs

from traceaudit.analyses.onepage.bound import gain_bound, hidden_kernels, kernel_lines, without
from traceaudit.analyses.onepage.decision import decide
from traceaudit.analyses.onepage.fixes import Situation, kernel_evidence
from traceaudit.analyses.roofline import gap_of
from traceaudit.analyses.serverlog.choice import choose_step
from traceaudit.errors import InvariantError
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.results import Completeness, DeviceKernels, KernelRow, Wall
from traceaudit.model.results.kernels import KernelPart, KernelRates, LaunchUse
from traceaudit.model.results.onepage import FixKind, FloorSide, KernelLine, OnePage, ServerSide, StepChoice
from traceaudit.model.results.roofline import Floor, Reading
from traceaudit.model.results.whatif import DeviceWhatIf, KernelGain

MS = 1_000_000
STEP_NS = 100 * MS


def row(name, op_time_ns, **changes):
    values = {
        "name": name,
        "kind": "compute",
        "rule": "",
        "launches": 1,
        "op_time_ns": op_time_ns,
        "share_of_op_time_frac": 0.0,
        "mean_ns": float(op_time_ns),
        "min_ns": op_time_ns,
        "p50_ns": float(op_time_ns),
        "max_ns": op_time_ns,
        "grid": None,
        "block": None,
        "blocks_per_sm": None,
    }
    return KernelRow(**(values | changes))


def line(name, time_ns, share, *, save_ns=None, parts=None, **changes):
    """A kernel; unless said otherwise, norms are light and all others work."""
    saved = time_ns if save_ns is None else save_ns
    use = LaunchUse.LIGHT if name.startswith("norm") else LaunchUse.WORK
    alone = (KernelPart(use, time_ns, 1.0, changes.get("rates", KernelRates())),)
    return KernelLine(row(name, time_ns, parts=parts or alone, **changes), time_ns, 1.0, share, saved)


def prediction(*gains, busy=0.5):
    return DeviceWhatIf(
        rank=0,
        device=0,
        name=None,
        changes=(),
        baseline_ns=STEP_NS,
        predicted_ns=STEP_NS,
        low_ns=STEP_NS,
        high_ns=STEP_NS,
        naive_ns=STEP_NS,
        busy_share_frac=busy,
        bound_by="both",
        changed_op_time_ns=0.0,
        matched={},
        reasons=(),
        kernels=gains,
        steps=1,
    )


def step_without(removed=None, *, graph_saves=0.0):
    """A re-timing: the names and what each saves."""
    removed = removed or {}

    def retime(speedups, graph_replay):
        saved = sum(
            ns * (1 - 1 / speedup.factor)
            for speedup in speedups
            for name, ns in removed.items()
            if speedup.pattern.search(name)
        )
        return STEP_NS - saved - graph_saves * graph_replay

    return retime


def situation(**changes):
    (device,) = samples.graph_decode().devices
    values = {
        "completeness": Completeness.of(()),
        "audit": device,
        "kernels": (),
        "prediction": prediction(),
        "retime": step_without(),
        "tokens_per_second": 100.0,
    }
    return Situation(**(values | changes))


def test_two_kernels_of_78_percent_with_half_of_the_wall_busy():
    """s = 0.78, f = 0.5: naive 1 / (1 - 0.39) = 1.639; 1 / (1 - 0.78) = 4.545 needs f = 1; re-timed as told."""
    lines = (line("a", 20 * MS, 0.40), line("b", 19 * MS, 0.38), line("c", 11 * MS, 0.22))
    found = gain_bound(lines, prediction(), step_without({"a": 20 * MS, "b": 9 * MS}), 28.0)
    assert found.names == ("a", "b")
    assert found.top_share_frac == pytest.approx(0.78)
    assert found.naive_factor == pytest.approx(1 / 0.61)
    assert found.profile_factor == pytest.approx(4.545, abs=1e-3)
    assert found.retimed_ns == 71 * MS
    assert found.retimed_factor == pytest.approx(100 / 71)
    assert found.tokens_per_second == 28.0


def test_a_step_of_nothing_else_has_no_factor():
    found = gain_bound((line("a", STEP_NS, 1.0),), prediction(busy=1.0), step_without({"a": STEP_NS}), None)
    assert (found.profile_factor, found.naive_factor, found.retimed_factor) == (None, None, None)


def test_no_kernel_no_bound():
    assert gain_bound((), prediction(), step_without(), None) is None


def test_lines_join_costs_and_gains_by_name():
    """Two launches of 3 ms in one used step of 8 ms op time."""
    (device,) = samples.graph_decode().devices
    total = sum(item.op_time_ns for item in device.steps.items if item.used) / device.ledger.steps
    kernels = DeviceKernels(0, 0, None, 6 * MS, 6 * MS, (row("a", 6 * MS, launches_per_step=2.0),))
    gains = (KernelGain("gone", 1.0, 0.0, 0.0, 1.0), KernelGain("a", 6.0 * MS, 5.0 * MS, 5.0 * MS, 6.0 * MS))
    (found,) = kernel_lines(kernels, prediction(*gains), device)
    assert (found.launches, found.save_ns, found.op_time_ns) == (2, 5 * MS, 6 * MS)
    assert found.share_of_busy_frac == pytest.approx(6 * MS / total)


def test_without_a_re_timing_lines_have_costs_alone():
    (device,) = samples.graph_decode().devices
    shown = row("a", 6 * MS, launches=3, launches_per_step=1.0, per_step_ns=3.0 * MS)
    kernels = DeviceKernels(0, 0, None, 6 * MS, 6 * MS, (shown,), steps=1)
    (found,) = kernel_lines(kernels, None, device)
    assert (found.op_time_ns, found.launches, found.save_ns) == (3 * MS, 1, None)
    assert hidden_kernels((found,)) == ()


def test_hidden_kernels_have_much_time_and_save_little():
    shown = (
        line("hidden", 10 * MS, 0.4, save_ns=MS),
        line("worth it", 10 * MS, 0.4, save_ns=9 * MS),
        line("small", MS, 0.04, save_ns=0),
    )
    assert [one.row.name for one in hidden_kernels(shown)] == ["hidden"]


def test_only_the_names_themselves_are_made_faster():
    pattern = without("gemm<a>", "b").pattern
    assert [name for name in ("gemm<a>", "gemm<a>2", "b", "ab") if pattern.search(name)] == ["gemm<a>", "b"]


def test_the_fix_that_buys_most_comes_first_and_the_next_counts_on_it():
    """Kernels a: 30 ms and b: 20 ms of 100. a first: 100 / 70; then b: 70 / 50, twice as many tokens in all."""
    lines = (line("gemm_b", 20 * MS, 0.2), line("gemm_a", 30 * MS, 0.3))
    fixes = decide(situation(kernels=lines, retime=step_without({"gemm_a": 30 * MS, "gemm_b": 20 * MS})))
    assert [fix.names for fix in fixes[:2]] == [("gemm_a",), ("gemm_b",)]
    assert [fix.step_ns for fix in fixes[:2]] == [70 * MS, 50 * MS]
    assert fixes[1].factor == pytest.approx(70 / 50)
    assert fixes[1].tokens_per_second == pytest.approx(200)
    assert all(fix.is_bound for fix in fixes[:2])


def test_a_kernel_with_known_bytes_goes_to_its_speed_of_light_and_no_further():
    """A quarter of 40 ms is its speed of light: 30 ms go."""
    known = line("gemm", 40 * MS, 0.4, rates=KernelRates(sol_frac=0.25, achieved_gbps=1000.0, peak_frac=0.25))
    (fix, *_) = decide(situation(kernels=(known,), retime=step_without({"gemm": 40 * MS})))
    assert fix.what == "bring {names} to its speed of light"
    assert fix.step_ns == pytest.approx(70 * MS)


def floor_of(expected_ns, *, minimum_ns=None, asked_ns=None, step_ns=STEP_NS, pp=1):
    """A floor side; only bounds, gap and stages are looked at."""

    def bounds(time_ns, least_ns):
        floor = Floor(least_ns, time_ns, time_ns, time_ns, None, "memory")
        return SimpleNamespace(
            floor=floor, gap=gap_of(floor, (Reading(step_ns, "wall"),), 8), setting=SimpleNamespace(pp=pp)
        )

    asked = None if asked_ns is None else bounds(asked_ns, asked_ns)
    return FloorSide(bounds(expected_ns, minimum_ns or expected_ns), "", "", "", asked)


def test_no_step_is_promised_below_the_floor():
    """A kernel of 80 ms without bytes, a floor of 30 ms and nothing else that could carry it: 50 ms go, not 80."""
    lines = (line("gemm_a", 80 * MS, 1.0),)
    retime = step_without({"gemm_a": 80 * MS})
    assert decide(situation(kernels=lines, retime=retime))[0].step_ns == 20 * MS
    (fix,) = decide(situation(kernels=lines, retime=retime, floor=floor_of(30 * MS)))
    assert (fix.step_ns, fix.floor_binds) == (pytest.approx(50 * MS), True)


def test_what_other_kernels_can_carry_is_not_asked_of_one():
    """The floor of 30 ms; gemm_b carries 10 ms at its speed of light, gemm_c 15 ms at most: 5 ms are left to gemm_a."""
    lines = (
        line("gemm_a", 50 * MS, 0.5),
        line("gemm_b", 20 * MS, 0.2, rates=KernelRates(sol_frac=0.5)),
        line("gemm_c", 15 * MS, 0.15),
        line("norm", 15_000, 0.15),
    )
    retime = step_without({"gemm_a": 50 * MS, "gemm_b": 20 * MS, "gemm_c": 15 * MS})
    first, second, *_ = decide(situation(kernels=lines, retime=retime, floor=floor_of(30 * MS)))
    assert (first.step_ns, first.floor_binds) == (pytest.approx(55 * MS), True)
    # Without gemm_c, both of unknown bytes must hold 20 ms.
    assert (second.names, second.step_ns) == (("gemm_b",), pytest.approx(45 * MS))


@pytest.mark.parametrize("pp", [1, 2])
def test_all_fixes_together_stay_above_the_floor(pp):
    lines = tuple(line(f"norm_{index}", 10_000, 0.25) for index in range(4))
    times = dict.fromkeys((one.row.name for one in lines), 24.0 * MS)
    (fix,) = decide(situation(kernels=lines, retime=step_without(times), floor=floor_of(30 * MS, pp=pp)))
    assert (fix.step_ns, fix.floor_binds) == (30 * MS, True)


def test_a_step_below_the_expected_floor_is_held_against_the_minimum():
    lines = tuple(line(f"norm_{index}", 10_000, 0.25) for index in range(4))
    times = dict.fromkeys((one.row.name for one in lines), 24.0 * MS)
    floor = floor_of(120 * MS, minimum_ns=40 * MS)
    assert decide(situation(kernels=lines, retime=step_without(times), floor=floor))[0].step_ns == 40 * MS


def test_a_step_shorter_than_its_floor_decides_nothing():
    lines = (line("gemm_a", 80 * MS, 1.0),)
    (fix,) = decide(situation(kernels=lines, retime=step_without({"gemm_a": 80 * MS}), floor=floor_of(101 * MS)))
    assert (fix.kind, fix.what) == (FixKind.RECORD, "give model, batch, context and device of this trace")


def test_log_and_trace_of_two_runs_decide_nothing():
    lines = (line("gemm_a", 80 * MS, 1.0),)
    found = decide(situation(kernels=lines, retime=step_without({"gemm_a": 80 * MS}), other_run=("graphs",)))
    assert [(fix.what, fix.evidence) for fix in found] == [
        ("take log and trace from the same run", "graphs: nothing follows from the two together")
    ]


def test_short_kernels_that_are_no_products_are_fused_together():
    small = tuple(line(f"norm_{index}", 10_000, 0.1) for index in range(4))
    times = dict.fromkeys((one.row.name for one in small), 5.0 * MS)
    (fix, *_) = decide(situation(kernels=small, retime=step_without(times)))
    assert fix.what == "fuse the small kernels into their neighbours"
    assert len(fix.names) == 4
    assert fix.step_ns == 80 * MS


def copy(time_ns, *, widens=False):
    """Two launches that move 20 MB each."""
    rates = KernelRates(moved_bytes=40 * 10**6, covered_launches=2, sol_frac=0.5)
    return KernelPart(LaunchUse.COPY, time_ns, 2.0, rates, widens, ops=(4, 5))


def test_launches_of_one_name_go_to_the_fix_of_their_use():
    """A kernel of 60 ms: 40 ms copy the cache, 20 ms are light; the fix of each changes its own ops alone."""
    light = KernelPart(LaunchUse.LIGHT, 20 * MS, 10.0, KernelRates(), ops=(1, 2, 3))
    joins = line("cat", 60 * MS, 0.6, parts=(copy(40 * MS), light))
    took = {(4, 5): 40 * MS, (1, 2, 3): 20 * MS}

    def retime(changes, _):
        return STEP_NS - sum(took.get(change.ops, 0) for change in changes)

    found = decide(situation(kernels=(joins,), retime=retime))
    assert [(fix.kind, fix.step_ns, fix.is_bound) for fix in found[:2]] == [
        (FixKind.CACHE, 60 * MS, True),
        (FixKind.KERNEL, 40 * MS, True),
    ]
    assert found[0].what == "keep the KV cache in place (a static or paged cache)"
    assert found[0].evidence == (
        "40 ms a step, 40 % of the op time: 2 launches of 20 ms write all keys or values that attention then reads, "
        "20 MB moved by each"
    )
    assert found[1].evidence == (
        "20 ms a step, 20 % of the op time, in 10 launches of 2 ms that read neither weights nor cache"
    )


def test_sharing_heads_speeds_attention_up_as_well():
    """What the copies take is no bound, nor is the speed of light of an attention that reads them."""
    lines = (
        line("expand", 40 * MS, 0.4, parts=(copy(40 * MS, widens=True),)),
        line("flash_attention", 30 * MS, 0.3, rates=KernelRates(sol_frac=0.5)),
    )
    found = decide(situation(kernels=lines, retime=step_without({"expand": 40 * MS, "flash_attention": 30 * MS})))
    assert [(fix.kind, fix.is_bound) for fix in found[:2]] == [(FixKind.CACHE, False), (FixKind.KERNEL, False)]
    assert found[0].what.startswith("let query heads share the heads of the KV cache")


def test_copies_of_the_cache_carry_none_of_the_floor():
    """A floor of 30 ms: after the copy of 40 ms, attention of unknown bytes must still hold 30 of its 60 ms."""
    lines = (line("cat", 40 * MS, 0.4, parts=(copy(40 * MS),)), line("attend", 60 * MS, 0.6))
    retime = step_without({"cat": 40 * MS, "attend": 60 * MS})
    found = decide(situation(kernels=lines, retime=retime, floor=floor_of(30 * MS)))
    assert [(fix.names, fix.step_ns) for fix in found[:2]] == [
        (("cat",), 60 * MS),
        (("attend",), pytest.approx(30 * MS)),
    ]


def test_a_graph_is_an_estimate():
    device = samples.eager_dilated().devices[0]
    found = decide(situation(audit=device, retime=step_without(graph_saves=40.0 * MS)))
    (fix,) = [one for one in found if one.what == "replay the step from a graph"]
    assert (fix.kind, fix.is_bound, fix.step_ns) == (FixKind.HOST, False, 60 * MS)
    assert "as profiled" in fix.evidence


def test_a_batch_that_was_capped_is_worth_its_requests(tmp_path):
    """8 of 16 run: twice the tokens, the step as it is."""
    log = [serverlogs.decode(second, 8, 28.0, queue=8) for second in range(0, 110, 11)]
    report = serverlogs.report(tmp_path, *log, expected=16)
    (fix, *_) = decide(situation(server=ServerSide(report, 16, 8, 8), tokens_per_second=28.0))
    assert (fix.kind, fix.factor, fix.tokens_per_second) == (FixKind.BATCH, 2.0, 56.0)
    assert "8 requests wait" in fix.evidence


def test_a_trace_that_cannot_be_believed_is_recorded_again_first():
    lost = Finding("file_truncated", Severity.ERROR, "the file ends early", hint="record again to the end")
    (fix, *_) = decide(situation(completeness=Completeness.of((lost,))))
    assert (fix.kind, fix.evidence) == (FixKind.RECORD, "file_truncated: record again to the end")


def test_nothing_that_rests_on_idle_time_follows_from_an_unreliable_trace():
    lost = Finding("idle_while_pending", Severity.ERROR, "rows were cut away")
    device = samples.eager_dilated().devices[0]
    lines = (line("gemm_a", 30 * MS, 0.3),)
    retime = step_without({"gemm_a": 30 * MS}, graph_saves=40.0 * MS)
    found = decide(situation(completeness=Completeness.of((lost,)), audit=device, kernels=lines, retime=retime))
    assert [fix.kind for fix in found] == [FixKind.RECORD, FixKind.KERNEL]


def test_idle_time_is_removed_once():
    """Graph replay would take 10 of the idle time; what else removes idle time takes all of it, and not twice."""
    found = decide(situation(audit=samples.eager_dilated().devices[0], retime=step_without(graph_saves=0.1 * MS)))
    assert len([fix for fix in found if fix.kind is FixKind.HOST]) == 1


def test_nothing_follows_from_a_wall_of_another_run():
    other = Finding("wall_below_busy", Severity.WARNING, "busy is longer than the wall")
    lines = (line("gemm_a", 30 * MS, 0.3),)
    found = decide(
        situation(completeness=Completeness.of((other,)), kernels=lines, retime=step_without({"gemm_a": 30 * MS}))
    )
    assert [fix.kind for fix in found] == [FixKind.RECORD]


def test_without_a_re_timing_there_is_no_decision():
    assert decide(situation(prediction=None)) == ()


def test_evidence_names_grid_and_rate():
    starved = line(
        "attention",
        2 * MS,
        0.5,
        grid=(64, 1, 1),
        blocks_per_sm=64 / 132,
        rates=KernelRates(achieved_gbps=35.0, peak_frac=0.0073, bytes_source="model"),
    )
    assert kernel_evidence(starved, starved.row.parts[0]) == (
        "2 ms a step, 50 % of the op time; 64 blocks on 132 multiprocessors; "
        "35 GB/s, 0.73 % of the peak (bytes by model)"
    )


def test_a_page_is_about_a_device_that_it_holds():
    other = replace(samples.graph_decode().devices[0], rank=7)
    with pytest.raises(InvariantError):
        OnePage(samples.graph_decode(), other, StepChoice(None, ""), None, None, (), (), None, ())


@pytest.fixture
def report(tmp_path):
    """8 run at 28 tokens/s; the lines lie 40 passes of 8 / 28 s apart."""
    lines = [serverlogs.decode(round(40 * 8 / 28 * index), 8, 28.0, queue=8) for index in range(12)]
    return serverlogs.report(tmp_path, *lines)


def test_the_log_goes_before_what_follows_from_another_batch(report):
    client = Wall(571_428_571, "16 running / 28 tokens/s")
    found = choose_step(report, derived=client, tokens_per_second=28.0, concurrency=16)
    assert found.wall.step_ns == 285_714_286
    assert found.given is client
    assert found.reason.startswith("the log shows 8 running, not 16")


def test_a_step_that_was_measured_as_such_stands(report):
    stated = Wall(300 * MS, "--wall-ms 300")
    found = choose_step(report, stated=stated, concurrency=16)
    assert found.wall is stated
    assert any(reading.step_ns == 285_714_286 for reading in found.readings)


def test_a_log_that_bears_the_batch_out_says_so(report):
    found = choose_step(report, tokens_per_second=28.0, concurrency=8)
    assert found.reason.startswith("the log shows 8 running (")


def test_a_log_without_a_rate_leaves_it_to_the_client(tmp_path):
    lines = [
        serverlogs.decode(11 * index, 8, 28.0).replace("gen throughput (token/s): 28.00, ", "") for index in range(2)
    ]
    derived = Wall(285 * MS, "8 running / 28 tokens/s")
    found = choose_step(serverlogs.report(tmp_path, *lines[:1]), derived=derived)
    assert (found.wall, found.reason) == (derived, "the log gives no step time")

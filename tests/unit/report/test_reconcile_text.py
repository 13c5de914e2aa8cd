"""What a reconciliation says, whatever its layout."""

import json
from dataclasses import replace

import pytest
import samples

from traceaudit.model.results import IdleLatency
from traceaudit.report import Page, render
from traceaudit.report.waterfall import Role, sections

MS = samples.MS


def table(result, width=100):
    return render("reconcile", "table", result, Page(width=width))


def flat(text):
    return " ".join(text.split())


def test_the_verdict_comes_first():
    assert table(samples.unreliable()).splitlines()[1].startswith("UNRELIABLE")


@pytest.mark.parametrize(("form", "unit"), [("table", ""), ("markdown", "%")])
def test_unreliable_prints_no_bare_share(form, unit):
    """Idle 7.6 and busy 2.4 of 10 ms; the whole alone carries no mark."""
    text = render("reconcile", form, samples.unreliable())
    assert "7.600?" in text
    for share in ("76.0", "24.0"):
        assert text.count(share) == text.count(f"{share}{unit}?") > 0
    assert f"100.0{unit}?" not in text


def test_the_shares_of_an_unreliable_trace_are_doubtful_even_of_times_that_are_not():
    """Busy 2.4 of 10 ms: no finding names the busy time, and rows that were lost lengthen the window."""
    result = samples.unreliable()
    device = replace(result.devices[0], doubtful=frozenset())
    text = table(replace(result, devices=(device,)))
    assert "2.400 " in text
    assert "24.0?" in text


def test_every_term_of_the_ledger_is_printed_or_named_as_zero():
    text = table(samples.graph_decode())
    names = ("compute", "exposed comm", "exposed copy", "idle graph", "idle latency", "idle host", "idle unknown")
    for name in (*names, "launch call", "delivery", "turnaround", "wall", "window", "residual"):
        assert name in text
    assert "0: exposed comm, exposed copy, idle unknown" in text


def test_dilation_does_not_sell_the_profilers_idle():
    text = flat(table(samples.eager_dilated()))
    assert "dilation 3.6x" in text
    assert "idle at full speed, split as in the profile (estimate) 2.28 ms" in text
    assert "mostly the profiler's own doing" in text
    assert "As profiled, host cost 10.5 ms" in text


@pytest.mark.parametrize(("high_ns", "told"), [(3_530_000, False), (3_600_000, True)])
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_repeats_of_the_wall_that_differ_by_more_than_a_tenth_are_told(form, high_ns, told):
    """A wall of 3.3 ms: 3.2 to 3.53 are 10 % of it, 3.2 to 3.6 are 12.1 %."""
    result = samples.eager_dilated()
    (device,) = result.devices
    step = replace(device.step, wall_low_ns=3_200_000, wall_high_ns=high_ns)
    text = flat(render("reconcile", form, replace(result, devices=(replace(device, step=step),))))
    assert ("The wall is not steady: its repeats took 3.20 ms to 3.60 ms, a range of 12.1% of it" in text) is told
    assert ("not steady" in text) is told


def test_the_ledger_at_full_speed_sums_to_the_wall():
    (device,) = samples.eager_dilated().devices
    full_speed, profiled = sections(device, unreliable=False)
    parts = [line.time_ns for line in full_speed.lines if line.role is not Role.WHOLE]
    assert sum(parts) == full_speed.whole_ns == 3_300_000
    assert profiled.whole_ns == 12 * MS


def test_a_wall_below_busy_is_not_the_same_run():
    text = flat(table(samples.wall_below_busy()))
    assert "shorter than busy, 3.00 ms: the two do not describe the same run" in text
    assert "full speed" not in text


def test_bars_follow_each_other():
    (device,) = samples.graph_decode().devices
    (section,) = sections(device, unreliable=False)
    at_ns = 0.0
    for line in section.lines:
        if line.role in (Role.COMPUTE, Role.COMM, Role.COPY, Role.IDLE):
            assert line.at_ns == pytest.approx(at_ns)
            at_ns += line.time_ns
    assert at_ns == pytest.approx(device.step.window_ns)


def test_host_cost_and_scheduler_lead():
    text = flat(table(samples.graph_decode()))
    assert (
        "Host cost 445 µs a step (idle host 400 µs + launch calls 45.0 µs): mostly annotation:schedule 250 µs" in text
    )
    assert "Scheduler time 350 µs a step, 330 µs of it exposed" in text


def test_launch_calls_are_among_the_causes_of_host_cost():
    """Calls of 5.50 ms are more than the largest cause of idle_host, the framework with 3.75 ms."""
    text = flat(table(samples.eager_dilated()))
    assert "launch calls 5.50 ms): mostly launch calls 5.50 ms and framework 3.75 ms." in text


def test_coarse_times_carry_their_error():
    assert "busy 500 µs ± 4.00 µs, idle 300 µs ± 4.00 µs" in flat(table(samples.coarse()))


def test_steps_left_out_say_why():
    assert "left out: #0: window 12.1 % off the median of the others" in flat(table(samples.graph_decode()))


def test_many_causes_are_folded_with_count_and_time():
    causes = {f"python:f{i}.py:g": 1_000 * (i + 1) for i in range(30)}
    device = samples.audit([samples.step_item(0, MS, MS - sum(causes.values()))], host_by=causes)
    assert "22 smaller causes  0.253" in table(samples.reconciliation(device))


def test_many_steps_are_folded_with_their_count():
    items = [samples.step_item(i, 3 * MS + (i == 15), MS) for i in range(40)]
    items[3] = replace(items[3], left_out="other ops")
    text = table(samples.reconciliation(samples.audit(items)))
    assert "31 more steps, all used, none longer" in text
    assert "ProfilerStep#17" in text  # the longest
    assert "left out: #3: other ops" in text


def test_doubtful_numbers_are_marked_where_they_stand():
    device = samples.audit(
        [samples.step_item(0, 3 * MS, MS, latency=MS)], doubtful={"idle_ns", "idle_host", "idle_latency"}
    )
    text = table(samples.reconciliation(device))
    assert "1.000?" in text
    assert "33.3?" in text
    assert "? the findings above make these numbers doubtful" in text


def test_a_device_without_used_steps_has_a_report():
    device = samples.audit([samples.step_item(0, 3 * MS, MS)])
    ledger = replace(
        device.ledger,
        steps=0,
        window_ns=0,
        accounts=type(device.ledger.accounts)(),
        idle_latency_by=IdleLatency(),
        idle_host_by={},
        idle_by_position=type(device.ledger.idle_by_position)(),
    )
    result = samples.reconciliation(replace(device, ledger=ledger, rank=1), device)
    for form in ("table", "markdown", "json", "csv"):
        assert render("reconcile", form, result)


def test_four_ranks_are_compared_and_the_slowest_shown():
    text = table(samples.ranks())
    assert text.count("100.0 ") == 1
    assert "rank 3, device 0, NVIDIA H200" in text
    assert "Shown in full: the device with the longest step" in text


def test_json_has_integers_where_the_contract_says_so():
    document = json.loads(render("reconcile", "json", samples.graph_decode()))
    device = document["devices"][0]
    assert document["schema_version"] == 1
    assert device["ledger"]["accounts"]["compute"] == 6 * MS
    assert device["ledger"]["residual_ns"] == 20_000
    assert device["ledger"]["host_cost_ns"] == 890_000
    assert device["ledger"]["idle_host_by"]["other_api"] == 0
    assert device["step"]["dilation"] is None
    assert device["step"]["window_ns"] == 3_570_000.0
    assert [item["used"] for item in device["steps"]["items"]] == [False, True, True]


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_unreliable_marks_reach_the_other_reports(form):
    findings = samples.unreliable().completeness.findings
    assert "75.0%?" in render("kernels", form, samples.kernel_report(findings=findings))
    assert "8.90 ms?" in render("inspect", form, samples.inspection(findings=findings))

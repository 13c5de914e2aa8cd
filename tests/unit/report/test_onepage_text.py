"""What the page says where trace, wall or floor do not hold."""

import re
from dataclasses import replace
from pathlib import Path

import founding
import pytest

from traceaudit import audit
from traceaudit.config import SelectionFlags, StepFlags, WallFlags
from traceaudit.config.onepage import onepage_request
from traceaudit.config.workload import RooflineFlags
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.results import Completeness
from traceaudit.report import render
from traceaudit.report.onepage_bounds import decision_lines, floor_block, gain_block, hidden_text, kernels_answer
from traceaudit.report.onepage_words import batch_block, step_block, where_block

TRANSFORMERS = Path(__file__).parents[3] / "traces" / "transformers"
V4 = RooflineFlags(model="deepseek-v4-flash", tp=4, context="320")


@pytest.fixture
def page(tmp_path):
    """Return the founding case's page with other flags."""
    trace, log = founding.write_trace(tmp_path), founding.write_log(tmp_path)

    def call(*, wall=None, floor=V4, logs=(log,)):
        request = onepage_request(
            wall=WallFlags(tokens_per_second="28", concurrency=16) if wall is None else wall,
            steps=StepFlags(),
            selection=SelectionFlags(),
            scheduler=None,
            server_logs=logs,
            floor=floor,
        )
        return audit.onepage(trace, request)

    return call


@pytest.fixture
def unreliable(page):
    """The same with rows lost."""
    made = page()
    lost = Finding("idle_while_pending", Severity.ERROR, "rows were cut away", hint="record again")
    completeness = Completeness.of((*made.completeness.findings, lost))
    return replace(made, reconciliation=replace(made.reconciliation, completeness=completeness))


def test_busy_and_idle_share_the_wall_where_the_profile_is_a_little_longer():
    """Wall 843.4 µs, busy 780.5 µs: 62.9 µs are left, 7.5 % of the wall; the window of 852.0 µs has 71.5 µs of idle."""
    request = onepage_request(
        wall=WallFlags(),
        steps=StepFlags(),
        selection=SelectionFlags(),
        scheduler=None,
        server_logs=(),
        floor=RooflineFlags(model=str(TRANSFORMERS / "compiled-config.json"), batch=8, context="1025"),
    )
    block = where_block(audit.onepage(str(TRANSFORMERS / "compiled.json.gz"), request))
    assert block.answer == "busy 780 µs (92.5% of the wall), idle 62.9 µs (7.5%), 71.5 µs as profiled"
    assert block.evidence[0].startswith("idle split as in the profile (estimate): ")


def test_what_is_re_timed_is_called_an_estimate(page):
    """No kernel is worth more than 0 ns by re-timing: a model that holds the host fixed, and no bound."""
    made = page()
    idle = replace(made, kernels=tuple(replace(line, save_ns=0.0) for line in made.kernels))
    assert kernels_answer(idle) == "none alone: removing any one saves about 0 ns a step, re-timed"
    assert hidden_text(idle.kernels[:1]).endswith("hidden behind the host: removing it saves about 0 ns, re-timed")
    assert hidden_text(idle.kernels[:2]).endswith("removing them one by one saves about 0 ns in all, re-timed")
    assert gain_block(made).answer.startswith("the 2 largest kernels removed: about 1.6x, re-timed")


def test_an_unreliable_trace_shows_no_share_of_idle_time(unreliable):
    block = where_block(unreliable)
    assert "%" not in block.answer
    assert "idle 147 ms?" in block.answer
    for form in ("table", "markdown"):
        text = render("onepage", form, unreliable)
        assert re.search(r"idle[^\n%]{0,40}\d%", text) is None
        assert "39.0%?" in text
        assert re.search(r"54\.\d+( ms)?\?[ |]+39\.0%\?[ |]+\S+( ms)?\?", text)  # time, share and gain alike


def test_a_step_below_its_floor_is_of_something_else(page):
    found = page(logs=(), wall=WallFlags(wall_ms="1"), floor=replace(V4, batch=4096, context="100000"))
    block = floor_block(found)
    assert "the step is SHORTER" in block.answer
    assert "no step is shorter than its floor" in block.evidence[0]


def test_without_wall_and_log_the_page_says_what_is_missing(page):
    found = page(logs=(), wall=WallFlags())
    assert "as profiled; no wall from outside" in step_block(found).answer
    answer = batch_block(found).answer
    assert answer == "8 by the names of the steps; not checked: --server-log LOG shows what the server ran"
    assert "window of the trace" in found.floor.roofline.gap.numerator


def test_a_floor_for_another_batch_than_the_steps_have_is_remarked(page):
    found = page(logs=(), wall=WallFlags(), floor=replace(V4, batch=16))
    assert batch_block(found).answer.startswith("8 by the names of the steps, NOT the 16 of the floor")


def test_without_a_model_the_floor_is_not_asked(page):
    assert "--model CONFIG" in floor_block(page(floor=RooflineFlags())).answer


def test_without_a_re_timing_there_are_costs_and_no_gains(page):
    made = page()
    lines = tuple(replace(line, save_ns=None) for line in made.kernels)
    bare = replace(made, gain=None, kernels=lines, hidden=(), fixes=())
    assert "not known" in kernels_answer(bare)
    assert "no bound" in gain_block(bare).answer
    assert (hidden_text(()), decision_lines(bare)) == ("", ())
    for form in ("table", "markdown", "json"):
        assert render("onepage", form, bare)
    assert "nothing found that buys 2 % or more" in render("onepage", "table", bare)


def test_the_gap_names_both_floors(page):
    text = " ".join(floor_block(page()).evidence)
    assert "49x = 286 ms / 5.88 ms at batch 8" in text
    assert "had batch 16 run, 62x = 571 ms / 9.20 ms" in text


def test_a_log_of_another_load_than_the_trace_is_remarked(page):
    made = page()
    other = replace(made, server=replace(made.server, trace_batch=4))
    assert any("not the same load" in text for text in batch_block(other).evidence)


def test_names_of_a_trace_cannot_break_out(page):
    made = page()
    nasty = "\x1b[31m[link](x)|<b>`"
    lines = tuple(replace(line, row=replace(line.row, name=nasty, short_name="")) for line in made.kernels)
    for form in ("table", "markdown"):
        text = render("onepage", form, replace(made, kernels=lines))
        assert "\x1b" not in text

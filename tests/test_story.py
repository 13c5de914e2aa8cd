"""The table of the founding story: each claim that was made by hand, and what the program says about it."""

import json

import founding
import pytest

from traceaudit.cli.main import main

V4 = ("--model", "deepseek-v4-flash", "--tp", "4", "--context", "320")
SERVER, WORKSTATION = "RTX PRO 6000 Blackwell Server", "RTX PRO 6000 Blackwell Workstation"
MS = 1_000_000


@pytest.fixture
def answer(capsys):
    """Run a command and return its JSON document."""

    def call(*args):
        assert main([*map(str, args), "--format", "json", "--quiet"]) == 0
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def page(tmp_path, monkeypatch, answer):
    """Return the document of the one-page audit of the founding case."""
    monkeypatch.chdir(tmp_path)
    trace, log = founding.write_trace(tmp_path), founding.write_log(tmp_path)

    def call(*args):
        return answer("reconcile", trace, "--server-log", log, "--model", "deepseek-v4-flash", "--tp", "4", *args)

    return call


CLIENT = ("--tokens-per-second", "28", "--concurrency", "16")


def test_the_napkin_is_the_floor_of_batch_one_with_four_bits_for_every_weight(answer):
    """13 B x 0.5 B / 4 = 1.625 GB; at 1.9 TB/s 0.855 ms."""
    found = answer("roofline", "--params", "13e9", "--bits", "4", "--tp", "4", "--peak-gbps", "1900")
    assert found["per_gpu"]["weight_bytes"]["expected"] == 1_625_000_000
    assert found["floor_ns"]["expected"] == pytest.approx(0.855 * MS, rel=1e-3)


@pytest.mark.parametrize(
    ("gpu", "batch", "gbps", "gigabytes", "floor_ms"),
    [
        (WORKSTATION, 16, 1792, 14.69, 8.20),
        (SERVER, 16, 1597, 14.69, 9.20),
        (WORKSTATION, 8, 1792, 9.39, 5.24),
        (SERVER, 8, 1597, 9.39, 5.88),
    ],
)
def test_the_floor_that_the_model_has(answer, gpu, batch, gbps, gigabytes, floor_ms):
    found = answer("roofline", *V4, "--gpu", gpu, "--batch", batch)
    assert found["peak_gbps"] == gbps
    size = found["per_gpu"]["weight_bytes"]["expected"] + found["per_gpu"]["kv_bytes"]
    assert size / 1e9 == pytest.approx(gigabytes, abs=0.05)
    assert found["floor_ns"]["expected"] == pytest.approx(floor_ms * MS, rel=0.01)
    assert found["floor_ns"]["minimum"] < found["floor_ns"]["expected"] / 2


def test_at_batch_16_about_81_of_256_experts_are_touched(answer):
    experts = answer("roofline", *V4, "--gpu", SERVER, "--batch", 16)["experts"]
    assert (experts["count"], experts["minimum"]) == (256, 6)
    assert experts["expected"] == pytest.approx(80.8, abs=0.1)


def test_the_step_is_that_of_the_batch_in_the_log(page):
    """8 / 28 = 285.7 ms; 16 / 28 = 571.4 ms would need a log that shows 16."""
    found = page(*CLIENT)
    assert found["step_time"]["wall_ns"] == 285_714_286
    assert found["step_time"]["given_ns"] == 571_428_571
    assert "8 running, not 16" in found["step_time"]["reason"]
    (mismatch,) = [one for one in found["completeness"]["findings"] if one["code"] == "batch_mismatch"]
    assert mismatch["impact_ns"] == 285_714_285
    assert found["completeness"]["verdict"] == "complete"


def test_every_reading_is_given_with_the_line_that_decides(page):
    """The line's own 28 tokens/s decide: one engine with 8 running, not two with 14 tokens/s each."""
    readings = {one["kind"]: one for one in page(*CLIENT)["server"]["readings"]}
    assert readings["log_batch"]["holds"] is True
    assert (readings["given"]["holds"], readings["given"]["step_ns"]) == (False, 571_428_571)
    assert (readings["engines"]["holds"], readings["engines"]["step_ns"]) == (False, 571_428_571)
    assert "14 tokens/s each" in readings["engines"]["arithmetic"]
    assert "#running-req: 8" in readings["given"]["line"]["text"]


def test_a_rate_of_14_on_the_line_means_two_engines(tmp_path, monkeypatch, answer):
    monkeypatch.chdir(tmp_path)
    log = founding.write_log(tmp_path, rate=14.0, queue=0)
    found = answer("reconcile", founding.write_trace(tmp_path), "--server-log", log, *CLIENT)
    readings = {one["kind"]: one for one in found["server"]["readings"]}
    assert (readings["engines"]["holds"], readings["log_batch"]["holds"]) == (True, False)
    assert found["step_time"]["wall_ns"] == 571_428_571


def test_a_factor_names_its_numerator_and_denominator(page):
    """286 / 5.88 = 49; had 16 run, 571 / 9.20 = 62; 571 / 0.855 = 668 compares batch 16 with the floor of batch 1."""
    floor = page(*CLIENT)["floor"]
    assert floor["gap_factor"] == pytest.approx(285.714 / 5.88, rel=0.01)
    assert "8 running / 28 tokens/s" in floor["gap"]["numerator"]
    assert "at batch 8" in floor["gap"]["denominator"]
    assert (floor["batch_source"], floor["context_source"].partition(",")[0]) == (
        "the server's log",
        "the server's log",
    )
    assert floor["asked"]["batch"] == 16
    assert 571.4286 * MS / floor["asked"]["expected_ns"] == pytest.approx(62, abs=1)


def test_two_kernels_of_78_percent_give_4_5_only_if_busy_is_the_whole_step(page):
    """1 / (1 - 0.78) = 4.5; with f = 0.487 of the wall busy, f s = 0.38: 1 / 0.62 = 1.61, 28 to 45 tokens/s."""
    gain = page(*CLIENT)["gain"]
    assert sorted(gain["names"]) == ["_tiled_sparse_decode_kernel", "moe_slot_gemv_kernel"]
    assert gain["top_share_frac"] == pytest.approx(0.78, abs=1e-3)
    assert gain["busy_share_frac"] * gain["top_share_frac"] == pytest.approx(0.38, abs=1e-3)
    assert gain["profile_factor"] == pytest.approx(4.545, abs=0.01)
    assert gain["naive_factor"] == pytest.approx(1.613, abs=0.01)
    assert gain["retimed_factor"] * gain["tokens_per_second"] == pytest.approx(45, abs=0.5)


def test_one_ledger_says_where_the_time_goes(page):
    """Busy 139 ms, the scheduler 146 ms: no kernel is the first thing to fix."""
    found = page(*CLIENT)
    (device,) = found["devices"]
    accounts, ledger = device["ledger"]["accounts"], device["ledger"]
    assert sum(accounts.values()) == ledger["window_ns"]
    assert ledger["window_ns"] + ledger["residual_ns"] == ledger["wall_ns"]
    assert accounts["compute"] / ledger["steps"] == pytest.approx(139.195 * MS, rel=1e-3)
    assert found["decision"][0]["kind"] == "host"
    assert found["decision"][0]["names"] == ["get_next_batch_to_run"]
    parts = found["floor"]["distance"]["parts"]
    assert sum(part["time_ns"] for part in parts) + found["floor"]["distance"]["floor_ns"] == ledger["wall_ns"]


def test_the_grid_names_the_cause_better_than_any_bandwidth(page):
    """64 blocks on 188 multiprocessors."""
    (kernel,) = [one for one in page(*CLIENT)["kernels"] if one["name"] == "_tiled_sparse_decode_kernel"]
    assert kernel["grid"] == [64, 1, 1]
    assert kernel["blocks_per_sm"] == pytest.approx(64 / 188)
    assert "underfilled_grid" in kernel["flags"]

"""Steady state, step time, limits and findings, with sums done by hand."""

import pytest
import serverlogs

from traceaudit.analyses.serverlog.analysis import serverlog
from traceaudit.analyses.serverlog.readings import log_readings, step_readings, wall_of_log
from traceaudit.errors import InvariantError, UsageError
from traceaudit.ingest.serverlog.reader import read_server_log
from traceaudit.model.results.serverlog import Cause, EngineLog, Limit, ReadingKind, Use
from traceaudit.model.serverlines import ServerLogOptions

# A run of 128 requests at 50 ms a step above the largest captured size, 32: a line is 40 steps, 2 s.
RAMP, STEADY, DRAIN = [16, 31, 58], [66, 67, 68, 67, 66], [40, 24, 9, 2]
STARTED = [
    "[2026-01-02 03:00:00] server_args=ServerArgs(dp_size=1, max_running_requests=None, decode_log_interval=40)",
    "[2026-01-02 03:00:01] Capture target decode CUDA graph begin. bs=[1, 2, 4, 8, 16, 24, 32], avail mem=9.40",
    "[2026-01-02 03:00:02] max_total_num_tokens=1500000, max_running_requests=4096, context_len=32768",
]


def fewer_running():
    lines = [*STARTED, serverlogs.prefill(0, 0)]
    for number, batch in enumerate(RAMP + STEADY + DRAIN):
        lines.append(serverlogs.decode(2 * number, batch, 20 * batch, graph=batch <= 32))
        if number < 3 or number == 4:
            lines.append(serverlogs.prefill(2 * number, batch))
    return lines


def only(report):
    (engine,) = report.engines
    return engine


def reading(found, kind):
    (one,) = [item for item in found if item.kind is kind]
    return one


def codes(report):
    return [finding.code for finding in report.findings]


def test_fewer_running_than_asked_for(tmp_path):
    report = serverlogs.report(tmp_path, *fewer_running(), expected=128)
    engine = only(report)
    assert (engine.samples, engine.steady_samples) == (12, 5)
    assert (engine.steady_batch, engine.steady_min, engine.steady_max, engine.max_batch) == (67, 66, 68, 68)
    assert (engine.queue_median, engine.graph_false, engine.tokens_per_second) == (0, 7, 1340)
    assert engine.implied_step_ns == report.implied_step_ns == 50_000_000
    assert engine.accept_length is None
    assert engine.cause.limit is Limit.CLIENT
    assert [(s.use, s.samples) for s in engine.stretches] == [(Use.RAMP, 3), (Use.STEADY, 5), (Use.DRAIN, 4)]
    (finding,) = report.findings
    assert (finding.code, finding.count) == ("batch_mismatch", 67)
    assert finding.impact_ns == 95_522_388 - 50_000_000  # 128 / 1340 s would have been read
    assert "#running-req: 67" in finding.examples[0]
    assert "all above the largest captured size, 32" in report.notes[0].text


def test_spacing_of_the_lines_bears_the_rate_out(tmp_path):
    # of the steady lines 66 67 | 68 67 66 three are 2 s after a line of their batch with no prefill between:
    # 66 to 67, 68 to 67, 67 to 66; 6 s for 120 steps
    found = reading(serverlogs.report(tmp_path, *fewer_running()).readings, ReadingKind.LINE_SPACING)
    assert (found.step_ns, found.holds) == (50_000_000, True)
    assert found.arithmetic == "6 s between lines / 120 passes"


def test_without_an_expected_batch_there_is_no_mismatch(tmp_path):
    report = serverlogs.report(tmp_path, *fewer_running())
    assert (report.expected, codes(report)) == (None, [])


def test_a_full_cache(tmp_path):
    lines = [
        "[2026-03-03 09:00:00 TP0] max_total_num_tokens=52000, chunked_prefill_size=8192, max_running_requests=2048",
        *(
            f"[2026-03-03 09:00:{10 + 2 * n} TP0] Decode batch. #running-req: {batch}, token usage: 0.97, "
            f"gen throughput (token/s): {25 * batch}.00, #queue-req: {100 - batch}"
            for n, batch in enumerate([38, 39, 40, 41, 40, 40])
        ),
    ]
    engine = only(serverlogs.report(tmp_path, *lines, expected=100))
    assert (engine.samples, engine.steady_batch, engine.max_batch, engine.queue_median) == (6, 40, 41, 60)
    assert (engine.graph_false, engine.tokens_per_second, engine.implied_step_ns) == (None, 1000, 40_000_000)
    assert engine.cause.limit is Limit.KV_CACHE
    assert [line.number for line in engine.cause.lines] == [4, 1]
    assert engine.stretches[0].use is Use.FIRST


# The founding case: 16 clients, 8 running, 28 tokens/s.


def founding(rate=28.0):
    return [serverlogs.decode(round(11.43 * n), 8, rate, ranks=" TP0", queue=8, graph=True, usage=0) for n in range(6)]


def test_the_founding_case(tmp_path):
    report = serverlogs.report(tmp_path, *founding(), expected=16)
    assert report.implied_step_ns == 285_714_286
    assert only(report).cause.limit is Limit.SERVER_CAP
    assert "a cap that the log does not name" in only(report).cause.reason
    found = step_readings(report, tokens_per_second=28, concurrency=16)
    assert [(item.kind, round(item.step_ns / 1e6), item.holds) for item in found] == [
        (ReadingKind.LOG, 286, True),
        (ReadingKind.LINE_SPACING, 285, True),
        (ReadingKind.LOG_BATCH, 286, True),
        (ReadingKind.GIVEN, 571, False),
        (ReadingKind.ENGINES, 571, False),
    ]
    assert all("#running-req: 8" in item.line.text for item in found)


def test_the_wall_of_the_founding_case(tmp_path):
    report = serverlogs.report(tmp_path, *founding(), expected=16)
    wall = wall_of_log(step_readings(report, tokens_per_second=28, concurrency=16))
    assert wall.step_ns == 285_714_286
    assert wall.source.startswith("server log: 8 running / 28 tokens/s, ")
    assert wall.source.endswith("server.log:2")
    assert wall_of_log(()) is None


def test_two_engines_at_half_the_rate(tmp_path):
    found = step_readings(serverlogs.report(tmp_path, *founding(14.0)), tokens_per_second=28, concurrency=16)
    engines = reading(found, ReadingKind.ENGINES)
    assert (engines.step_ns, engines.holds) == (571_428_571, True)
    assert reading(found, ReadingKind.LOG_BATCH).holds is False
    assert reading(found, ReadingKind.GIVEN).holds is False


def test_without_a_rate_in_the_log_nothing_decides(tmp_path):
    line = "[2026-06-17 21:09:09 TP0] Decode batch, #running-req: 8, #full token: 2560, ..."
    report = serverlogs.report(tmp_path, line, expected=16)
    assert (report.implied_step_ns, report.readings, codes(report)) == (None, (), ["batch_mismatch"])
    found = step_readings(report, tokens_per_second=28, concurrency=16)
    assert [(item.kind, item.holds) for item in found] == [
        (ReadingKind.LOG_BATCH, None),
        (ReadingKind.ENGINES, None),
        (ReadingKind.GIVEN, False),
    ]


def test_a_client_that_counts_the_ramp_too(tmp_path):
    found = step_readings(serverlogs.report(tmp_path, *founding(40.0)), tokens_per_second=28, concurrency=8)
    assert reading(found, ReadingKind.LOG_BATCH).holds is None
    assert reading(found, ReadingKind.GIVEN).holds is True


# Rates, acceptance, prefill.


def test_acceptance_lengthens_the_step(tmp_path):
    # 8 x 2.5 / 400 = 50 ms
    lines = [serverlogs.decode(2 * n, 8, 400, extra="accept len: 2.50, accept rate: 0.50, ") for n in range(5)]
    assert only(serverlogs.report(tmp_path, *lines)).implied_step_ns == 50_000_000


def test_lines_after_prefill_read_too_long(tmp_path):
    # 8 / 80 = 100 ms with prefill in between, 8 / 160 = 50 ms without
    lines = []
    for n in range(9):
        clean = n in {4, 8}
        lines += [] if clean else [serverlogs.prefill(4 * n, 8)]
        lines.append(serverlogs.decode(4 * n, 8, 160 if clean else 80))
    report = serverlogs.report(tmp_path, *lines)
    assert report.implied_step_ns == 100_000_000
    found = reading(report.readings, ReadingKind.DECODE_ONLY)
    assert (found.step_ns, found.arithmetic) == (50_000_000, "median of 2 of 8 steady lines")
    assert wall_of_log(report.readings).step_ns == 50_000_000


def test_iteration_numbers_count_the_passes(tmp_path):
    lines = [serverlogs.decode(2 * n, 8, 160).replace("Decode batch", f"Decode batch [{100 * n}]") for n in range(5)]
    found = reading(serverlogs.report(tmp_path, *lines).readings, ReadingKind.LINE_SPACING)
    assert (found.step_ns, found.arithmetic, found.holds) == (20_000_000, "8 s between lines / 400 passes", None)


def test_engines_without_tags_in_one_log_show_in_the_spacing(tmp_path):
    # 8 / 160 = 50 ms, 40 steps in 2 s; four such engines leave a line every half second
    lines = [serverlogs.decode(n // 2, 8, 160, usage=n % 4 / 100) for n in range(40)]
    report = serverlogs.report(tmp_path, *lines)
    assert any("4 engines without rank tags may share this log" in note.text for note in report.notes)


# Engines.


def dp_lines(rates, *, running=8, second=0):
    return [
        serverlogs.decode(second + 2 * n, running, rate, ranks=f" DP{rank} TP{rank}")
        for n in range(4)
        for rank, rate in rates.items()
    ]


def test_engines_are_summed(tmp_path):
    report = serverlogs.report(tmp_path, *dp_lines({0: 160, 1: 160, 2: 80}), expected=24)
    assert [engine.id for engine in report.engines] == ["DP0", "DP1", "DP2"]
    assert (report.steady_batch, report.tokens_per_second) == (24, 400)
    assert report.implied_step_ns == 60_000_000
    assert codes(report) == []


def test_ranks_that_repeat_an_engine_count_once(tmp_path):
    lines = [serverlogs.decode(2 * n, 8, 160, ranks=f" TP{tp}") for n in range(4) for tp in range(4)]
    report = serverlogs.report(tmp_path, *lines)
    assert (report.steady_batch, only(report).samples) == (8, 4)


def test_an_engine_that_the_numbers_tell_of(tmp_path):
    report = serverlogs.report(tmp_path, *dp_lines({0: 160, 2: 160}))
    (finding,) = report.findings
    assert (finding.code, finding.count) == ("engine_missing", 1)
    assert finding.message == "3 data-parallel engines, and the log has lines of 2: 1 is absent"


def test_engines_that_the_settings_tell_of(tmp_path):
    start = "[2026-01-02 03:04:00] server_args=ServerArgs(tp_size=4, dp_size=4)"
    report = serverlogs.report(tmp_path, start, *dp_lines({0: 160, 1: 160}), expected=32)
    assert codes(report) == ["batch_mismatch", "engine_missing"]
    assert report.findings[1].examples[0].endswith(start)
    assert report.findings[0].message == (
        "the server ran 16 requests at once (8 + 8), not 32: engines are absent from the log"
    )


def test_aggregated_lines_hide_no_engine(tmp_path):
    lines = [serverlogs.vllm(10 * n, 16, 320, engine="2 Engines Aggregated: ") for n in range(5)]
    report = serverlogs.report(tmp_path, *lines, expected=16)
    assert (only(report).pieces, report.steady_batch, codes(report)) == (2, 16, [])


def test_lines_of_their_own_are_preferred_to_aggregated_ones(tmp_path):
    lines = [
        serverlogs.vllm(10 * n, batch, 160, engine=engine)
        for n in range(4)
        for engine, batch in (("Engine 000: ", 8), ("Engine 001: ", 8), ("2 Engines Aggregated: ", 16))
    ]
    assert serverlogs.report(tmp_path, *lines).steady_batch == 16


def test_processes_of_one_log_are_engines(tmp_path):
    lines = [serverlogs.decode(2 * n, 8, 160, head=f"decode-{k}  | ") for n in range(4) for k in range(2)]
    report = serverlogs.report(tmp_path, *lines)
    assert [engine.id for engine in report.engines] == ["decode-0", "decode-1"]


# Limits.


def capped(value, dp_size=1, given=None):
    return [
        f"[2026-01-02 03:04:00] server_args=ServerArgs(dp_size={dp_size}, max_running_requests={given})",
        f"[2026-01-02 03:04:01] max_total_num_tokens=52000, max_running_requests={value}, context_len=131072",
    ]


def test_the_cap(tmp_path):
    lines = [*capped(8, given=8), *(serverlogs.decode(2 * n, 8, 160, queue=4) for n in range(4))]
    cause = only(serverlogs.report(tmp_path, *lines)).cause
    assert (cause.limit, [line.number for line in cause.lines]) == (Limit.SERVER_CAP, [4, 2, 1])
    assert cause.reason == "4 requests wait while the batch is 8: max 8 running requests"


def test_one_below_the_cap_divided_over_ranks(tmp_path):
    start = capped(16, dp_size=8, given=128)
    lines = [serverlogs.decode(2 * n, 15, 160, queue=1, ranks=f" DP{k} TP{k}") for n in range(4) for k in range(8)]
    report = serverlogs.report(tmp_path, *start, *lines, expected=128)
    assert report.steady_batch == 120
    assert report.engines[0].cause.reason == (
        "1 requests wait while the batch is 15, one below the cap: max 16 running requests an engine, "
        "128 divided over 8 DP ranks"
    )
    assert codes(report) == ["batch_mismatch"]


def test_a_cap_given_and_divided(tmp_path):
    start = ["[2026-01-02 03:04:00] server_args=ServerArgs(dp_size=2, max_running_requests=16)"]
    report = serverlogs.report(
        tmp_path,
        *start,
        *(serverlogs.decode(2 * n, 8, 160, queue=4, ranks=f" DP{k} TP{k}") for n in range(4) for k in range(2)),
    )
    assert report.engines[0].cause.limit is Limit.SERVER_CAP
    assert "16 divided over 2 DP ranks" in report.engines[0].cause.reason


def test_requests_put_back(tmp_path):
    retracted = "[2026-01-02 03:04:08] KV cache pool is full. Retract requests. #retracted_reqs: 2, #gained: 9"
    lines = [serverlogs.decode(2 * n, 8 + n % 2, 160, queue=4, usage=0.5) for n in range(6)]
    engine = only(serverlogs.report(tmp_path, *lines[:3], retracted, *lines[3:]))
    assert (engine.retracted, engine.cause.limit, engine.cause.lines[1].number) == (2, Limit.KV_CACHE, 4)


def test_nothing_explains_the_queue(tmp_path):
    lines = [serverlogs.decode(2 * n, 8 + n % 2, 160, queue=4, usage=0.3) for n in range(6)]
    assert only(serverlogs.report(tmp_path, *lines)).cause.limit is Limit.UNKNOWN


@pytest.mark.parametrize(("usage", "limit"), [(0.3, Limit.UNKNOWN), (0.95, Limit.KV_CACHE)])
def test_requests_wait_for_their_cache(tmp_path, usage, limit):
    items = "#prealloc-req: 3, #transfer-req: 2, "
    lines = [serverlogs.decode(2 * n, 8, 160, extra=items, usage=usage) for n in range(5)]
    cause = only(serverlogs.report(tmp_path, *lines)).cause
    assert cause.limit is limit
    assert cause.reason.startswith("5 requests wait for cache space")


# Loads.


def two_loads():
    one = [serverlogs.decode(2 * n, 16, 320) for n in range(5)]
    two = [serverlogs.decode(1000 + 2 * n, 8, 160) for n in range(12)]
    return [*one, *two]


def test_the_larger_load_counts(tmp_path):
    report = serverlogs.report(tmp_path, *two_loads())
    assert [(load.steady_batch, load.samples) for load in report.loads] == [(16, 5), (8, 12)]
    assert (report.load, report.steady_batch) == (2, 8)
    assert only(report).stretches[0].use is Use.OTHER_LOAD


def test_the_load_that_ran_the_expected_batch_counts(tmp_path):
    report = serverlogs.report(tmp_path, *two_loads(), expected=16)
    assert (report.load, report.steady_batch, codes(report)) == (1, 16, [])
    assert "the one that ran 16" in report.notes[-1].text or "the one that ran 16" in report.notes[0].text


def test_a_load_that_is_asked_for(tmp_path):
    assert serverlogs.report(tmp_path, *two_loads(), load=1).steady_batch == 16
    with pytest.raises(UsageError, match="2 loads, not a load 3"):
        serverlogs.report(tmp_path, *two_loads(), load=3)


def test_empty_batches_part_loads(tmp_path):
    lines = [serverlogs.vllm(10 * n, batch, 20 * batch) for n, batch in enumerate([8, 8, 8, 0, 0, 0, 4, 4, 4])]
    assert [load.steady_batch for load in serverlogs.report(tmp_path, *lines).loads] == [8, 4]


def test_a_new_start_parts_loads_without_clocks(tmp_path):
    lines = [serverlogs.decode(0, 8, 160).partition("] ")[2]] * 4
    others = [line.replace("#running-req: 8", "#running-req: 4") for line in lines]
    report = serverlogs.report(tmp_path, *lines, "server_args=ServerArgs(dp_size=1)", *others)
    assert [load.steady_batch for load in report.loads] == [8, 4]


def test_an_idle_server(tmp_path):
    report = serverlogs.report(tmp_path, *(serverlogs.vllm(10 * n, 0, 0) for n in range(5)), expected=16)
    engine = only(report)
    assert (engine.steady_batch, engine.implied_step_ns, engine.decided_by) == (0, None, None)
    assert codes(report) == ["batch_mismatch"]


def test_a_batch_that_wanders_is_noted(tmp_path):
    lines = [
        serverlogs.decode(2 * n, batch, 20 * batch) for n, batch in enumerate([20, 60, 25, 45, 30, 55, 22, 40] * 3)
    ]
    assert any("is not steady" in note.text for note in serverlogs.report(tmp_path, *lines).notes)


# TensorRT-LLM and vLLM state step times themselves.


def test_trtllm_step(tmp_path):
    # 12.5 ms a row: 80 rows a second
    report = serverlogs.report(tmp_path, *(serverlogs.trtllm(n, 8, device="12.5") for n in range(1600)))
    engine = only(report)
    assert reading(report.readings, ReadingKind.DEVICE_STEP).step_ns == 12_500_000
    assert reading(report.readings, ReadingKind.HOST_STEP).step_ns == 12_345_600
    assert engine.tokens_per_second == pytest.approx(8 * 1599 / 19)
    assert engine.cause.limit is Limit.UNKNOWN


def test_trtllm_with_speculation_has_no_rate(tmp_path):
    report = serverlogs.report(tmp_path, *(serverlogs.trtllm(n, 8, device="12.5", tokens=24) for n in range(1600)))
    assert report.tokens_per_second is None
    assert report.implied_step_ns == pytest.approx(12_500_000, rel=0.06)


def test_trtllm_ranks_that_share_all_requests_count_once(tmp_path):
    lines = [serverlogs.trtllm(n, 8, rank=rank) for n in range(50) for rank in range(4)]
    assert serverlogs.report(tmp_path, *lines).steady_batch == 8


def test_trtllm_ranks_with_their_own_requests_are_engines(tmp_path):
    lines = [serverlogs.trtllm(n, 8, rank=rank, requests="8/16") for n in range(50) for rank in range(2)]
    report = serverlogs.report(tmp_path, *lines)
    assert (report.steady_batch, codes(report)) == (16, [])


def test_trtllm_ranks_that_are_not_in_the_log(tmp_path):
    lines = [serverlogs.trtllm(n, 8, requests="8/16") for n in range(50)]
    (finding,) = serverlogs.report(tmp_path, *lines).findings
    assert (finding.code, finding.hint) == ("engine_missing", "set TLLM_PROFILE_LOG_RANKS=all")


def test_vllm_iterations_give_the_step(tmp_path):
    lines = []
    for n in range(5):
        lines.append(serverlogs.vllm(10 * n, 8, 640))
        lines.append(
            f"(EngineCore_DP0 pid=5) INFO 01-02 03:05:0{n} [core.py:1] Engine 000: Iteration({n}): 0 context requests, "
            "0 context tokens, 8 generation requests, 8 generation tokens, iteration elapsed time: 12.40 ms"
        )
    report = serverlogs.report(tmp_path, *lines)
    assert report.implied_step_ns == 12_500_000
    assert reading(report.readings, ReadingKind.DEVICE_STEP).step_ns == 12_400_000


def test_scrapes(tmp_path):
    text = ['vllm:num_requests_running{engine="0"} 8\nvllm:num_requests_waiting{engine="0"} 0'] * 3
    report = serverlogs.report(tmp_path, *text, expected=16)
    assert (report.steady_batch, codes(report), only(report).cause.limit) == (8, ["batch_mismatch"], Limit.CLIENT)


def test_options_and_invariants(tmp_path):
    with pytest.raises(UsageError, match="at least 1"):
        serverlog(read_server_log([serverlogs.write(tmp_path, *founding())]), ServerLogOptions(expected=0))
    engine = only(serverlogs.report(tmp_path, *founding()))
    fields = {name: getattr(engine, name) for name in EngineLog.__slots__}
    with pytest.raises(InvariantError):
        EngineLog(**{**fields, "samples": 7, "cause": Cause(Limit.UNKNOWN, "")})


# Rarer paths.


def test_an_engine_that_is_silent_in_the_load(tmp_path):
    lines = [*dp_lines({0: 160, 1: 160}), *(serverlogs.decode(1000 + n, 8, 160, ranks=" DP0 TP0") for n in range(9))]
    report = serverlogs.report(tmp_path, *lines)
    assert (report.load, [engine.id for engine in report.engines]) == (2, ["DP0"])
    assert any(note.text == "no line in this load from DP1" for note in report.notes)


def test_what_was_left_out_of_the_input_is_noted(tmp_path):
    lines = [line for line in founding() for _ in range(2)]
    report = serverlogs.report(tmp_path, *lines, serverlogs.vllm(0, 3, 9), "Decode batch" + "x" * 70_000)
    texts = [note.text for note in report.notes]
    assert any(text.startswith("1 samples of other engines") for text in texts)
    assert any(text.endswith("1 lines longer than 64 KiB were cut") for text in texts)


def test_a_cap_that_is_not_the_quotient(tmp_path):
    start = capped(8, dp_size=2, given=128)
    lines = [serverlogs.decode(2 * n, 8, 160, queue=4, ranks=f" DP{k} TP{k}") for n in range(4) for k in range(2)]
    cause = serverlogs.report(tmp_path, *start, *lines).engines[0].cause
    assert cause.reason == "4 requests wait while the batch is 8: max 8 running requests"


def test_a_pinned_batch_over_ranks(tmp_path):
    start = "[2026-01-02 03:04:00] server_args=ServerArgs(dp_size=2)"
    lines = [serverlogs.decode(2 * n, 8, 160, queue=4, ranks=f" DP{k} TP{k}") for n in range(4) for k in range(2)]
    reason = serverlogs.report(tmp_path, start, *lines).engines[0].cause.reason
    assert reason.endswith("; a cap of 16 divided over 2 DP ranks would be 8")


def test_requests_put_back_where_the_cache_is_not_told(tmp_path):
    def line(n):
        return f"[{serverlogs.stamp(2 * n)}] Decode batch, #running-req: {8 + n % 2}, #queue-req: 4"

    retracted = "[2026-01-02 03:04:08] KV cache pool is full. Retract requests. #retracted_reqs: 2"
    cause = only(serverlogs.report(tmp_path, line(0), line(1), retracted, line(2), line(3))).cause
    assert cause.limit is Limit.KV_CACHE
    assert cause.reason == "4 requests wait, 1 lines tell of requests put back for lack of space"


def test_no_engine_has_no_reading():
    assert log_readings((), 0, None, None) == ()


def test_a_rate_so_small_that_it_means_nothing(tmp_path):
    report = serverlogs.report(tmp_path, *founding(), expected=16)
    found = step_readings(report, tokens_per_second=1e-300, concurrency=16)
    assert {item.kind for item in found} == {ReadingKind.LOG, ReadingKind.LINE_SPACING}


def test_findings_make_no_trace_unreliable(tmp_path):
    report = serverlogs.report(tmp_path, *founding(), expected=16)
    assert [finding.code for finding in report.completeness.findings] == ["batch_mismatch"]
    assert report.completeness.verdict == "complete"

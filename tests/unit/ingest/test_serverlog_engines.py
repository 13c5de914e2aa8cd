"""Lines of vLLM, TensorRT-LLM and LMDeploy in every shape they had."""

import pytest
import serverlogs

from traceaudit.model.serverlines import EventKind, SampleKind, Software

V0 = (
    "INFO 01-02 03:04:05 metrics.py:467] Avg prompt throughput: 120.5 tokens/s, Avg generation throughput: 310.2 "
    "tokens/s, Running: 8 reqs, Swapped: 1 reqs, Pending: 2 reqs, GPU KV cache usage: 1.3%, CPU KV cache usage: 0.0%."
)
EARLY_V1 = (
    "INFO 01-02 03:04:05 [loggers.py:111] Avg prompt throughput: 120.5 tokens/s, Avg generation throughput: 310.2 "
    "tokens/s, Running: 8 reqs, Waiting: 3 reqs, GPU KV cache usage: 1.3%, Prefix cache hit rate: 0.0%"
)
V033 = (
    "(APIServer pid=7) INFO 01-02 03:04:05 [loggers.py:310] Engine 001: Avg prompt throughput: 120.5 tokens/s, Avg "
    "generation throughput: 310.2 tokens/s, Running: 8 reqs, Waiting: 3 reqs, Deferred: 1 reqs, KV fetch: 1 waiting to "
    "start, 2 in progress, 0 completed waiting, Preemptions: 3, GPU KV cache usage: 1.3%, Prefix cache hit rate: 0.0%, "
    "Corrupted: 0 reqs, External prefix cache hit rate: 0.0%, MM cache hit rate: 0.0%"
)
SPEC = (
    "(APIServer pid=4242) INFO 01-02 03:04:05 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.31, "
    "Accepted throughput: 175.20 tokens/s, Drafted throughput: 401.10 tokens/s, Accepted: 1752 tokens, Drafted: 4011 "
    "tokens, Per-position acceptance rate: 0.702, 0.405, 0.203, Avg Draft acceptance rate: 43.7%"
)
V0_SPEC = (
    "INFO 01-02 03:04:05 metrics.py:483] Speculative metrics: Draft acceptance rate: 0.612, System efficiency: 0.480, "
    "Number of speculative tokens: 3, Number of accepted tokens: 918, Number of draft tokens: 1500, Number of emitted "
    "tokens: 1200."
)


@pytest.mark.parametrize(
    ("line", "engine", "process"), [(V0, "", ""), (EARLY_V1, "", ""), (V033, "Engine 001", "pid 7")]
)
def test_vllm_stats(tmp_path, line, engine, process):
    found = serverlogs.sample(tmp_path, line)
    assert (found.kind, found.software) == (SampleKind.STATS, Software.VLLM)
    assert (found.engine, found.process) == (engine, process)
    assert (found.running, found.queue, found.tokens_per_second) == (8, 3, 310.2)
    assert found.cache_frac == pytest.approx(0.013)


def test_vllm_items_of_033(tmp_path):
    found = serverlogs.sample(tmp_path, V033)
    assert (found.transfer, found.retracted) == (3, 3)


def test_vllm_aggregated(tmp_path):
    found = serverlogs.sample(tmp_path, serverlogs.vllm(0, 16, 620, engine="2 Engines Aggregated: "))
    assert (found.engine, found.pieces) == ("aggregated", 2)


def test_vllm_colour(tmp_path):
    line = serverlogs.vllm(0, 8, 310).replace("(APIServer pid=4242)", "\x1b[1;36m(APIServer pid=4242)\x1b[0;0m")
    assert serverlogs.sample(tmp_path, line).process == "pid 4242"


def test_vllm_acceptance_follows_its_stats_line(tmp_path):
    log = serverlogs.read(
        tmp_path, serverlogs.vllm(0, 8, 310, pid=9), serverlogs.vllm(0, 8, 310), SPEC, serverlogs.vllm(10, 8, 310)
    )
    assert [sample.accept_length for sample in log.samples] == [None, 2.31, None]


def test_vllm_v0_acceptance(tmp_path):
    # 1200 tokens emitted by 1500 / 3 = 500 verifications
    log = serverlogs.read(tmp_path, V0, V0_SPEC)
    assert log.samples[0].accept_length == 2.4


def test_vllm_iteration(tmp_path):
    line = (
        "(EngineCore_DP0 pid=5) INFO 01-02 03:04:05 [core.py:1] Engine 000: Iteration(1234): 0 context requests, 0 "
        "context tokens, 8 generation requests, 8 generation tokens, iteration elapsed time: 12.34 ms, GPU KV cache "
        "usage: 1.3%"
    )
    found = serverlogs.sample(tmp_path, line)
    assert (found.kind, found.running, found.step_ns, found.iteration) == (SampleKind.ITERATION, 8, 12_340_000, 1234)
    assert found.prefill is False
    assert serverlogs.sample(tmp_path, line.replace("Engine 000: ", "")).engine == "Engine 000"
    dummy = serverlogs.sample(tmp_path, line.replace("12.34 ms", "12.34 ms (dummy)"))
    assert dummy.running == 0


def test_vllm_settings(tmp_path):
    log = serverlogs.read(
        tmp_path,
        "(APIServer pid=4242) INFO 01-02 03:04:00 [utils.py:233] non-default args: {'model': 'm', 'max_num_seqs': 16, "
        "'data_parallel_size': 2}",
        "(EngineCore_DP0 pid=5) INFO 01-02 03:04:01 [kv_cache_utils.py:864] GPU KV cache size: 123,456 tokens",
        serverlogs.vllm(0, 8, 310),
    )
    assert [(item.name, item.value) for item in log.settings] == [
        ("running_cap", 16),
        ("dp_size", 2),
        ("cache_tokens", 123_456),
    ]
    assert log.settings[2].engine == "Engine 000"


def test_a_year_that_ends(tmp_path):
    before = serverlogs.vllm(0, 8, 310).replace("01-02 03:04:05", "12-31 23:59:55")
    after = serverlogs.vllm(0, 8, 310).replace("01-02 03:04:05", "01-01 00:00:05")
    first, second = serverlogs.read(tmp_path, before, after).samples
    assert second.time_ns - first.time_ns == 10_000_000_000


OLDEST = (
    "iter = 120, global_rank = 0, rank = 0, currank_total_requests = 8/16, elapsed_time = 0.0123s, timestamp = "
    "2026-01-02 03:04:05, num_scheduled_requests: 8, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, "
    "'num_generation_tokens': 8}"
)
MIDDLE = OLDEST.replace("elapsed_time = 0.0123s", "host_step_time = 12.3ms, prev_device_step_time = 11.2345ms")
NEWEST = (
    "0: [01/02/2026-03:04:05] [TRT-LLM] [I] [_torch][RANK 0] iter = 120, global_rank = 0, rank = 0, "
    "num_scheduled_requests = 8, adp_dummy_ctx_tokens = 0, adp_dummy_gen_tokens = 0, kv_cache_util = N/A, "
    "currank_total_requests = 8/16, host_step_time = 12.3ms, prev_device_step_time = N/A, timestamp = 2026-01-02 "
    "03:04:05, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 8, 'cached_kv_tokens': 0}"
)


@pytest.mark.parametrize("line", [OLDEST, MIDDLE, NEWEST, serverlogs.trtllm(120, 8, requests="8/16")])
def test_trtllm_lines(tmp_path, line):
    found = serverlogs.sample(tmp_path, line)
    assert (found.kind, found.software, found.engine) == (SampleKind.ITERATION, Software.TRTLLM, "rank 0")
    assert (found.running, found.iteration, found.requests, found.step_tokens) == (8, 120, (8, 16), 8)
    assert found.host_step_ns in {12_300_000, 12_345_600}
    assert found.step_ns is None
    assert found.prefill is False


def test_trtllm_device_time_goes_to_the_row_before(tmp_path):
    # row 3 follows an empty one: 1456 ms is its wait; at row 5 a request has come
    rows = [
        serverlogs.trtllm(1, 8, device="N/A"),
        serverlogs.trtllm(2, 0, device="11"),
        serverlogs.trtllm(3, 8, device="1456"),
        serverlogs.trtllm(4, 8, device="12"),
        serverlogs.trtllm(5, 9, device="13", requests="9/9"),
        serverlogs.trtllm(6, 9, device="14", requests="9/9"),
    ]
    log = serverlogs.read(tmp_path, *rows)
    assert [sample.step_ns for sample in log.samples] == [None, None, 12_000_000, None, 14_000_000, None]


NEWER_LMDEPLOY = (
    "[2026-01-02 03:04:05 Engine 000] Avg thr (in/out): 120.5 / 310.2 tokens/s, Server "
    "(succeeded/failed/routed/waiting): 10 / 0 / 8 / 1, Engine (running/waiting): 8 / 2, KV cache: 1.3%"
)
OLDER_LMDEPLOY = (
    "[2026-01-02 03:04:05 DP0] Avg prompt throughput: 120.5 tokens/s, Avg generation throughput: 310.2 tokens/s, "
    "Finished: 10 reqs, Unfinished: 11 reqs, Running: 8 reqs, Waiting: 3 reqs, GPU KV cache usage: 1.3%, Prefix cache "
    "hit rate: 0.0%"
)


@pytest.mark.parametrize(("line", "engine"), [(NEWER_LMDEPLOY, "Engine 000"), (OLDER_LMDEPLOY, "DP0")])
def test_lmdeploy_lines(tmp_path, line, engine):
    found = serverlogs.sample(tmp_path, line)
    assert (found.kind, found.software, found.engine) == (SampleKind.STATS, Software.LMDEPLOY, engine)
    assert (found.running, found.queue, found.tokens_per_second) == (8, 3, 310.2)
    assert found.cache_frac == pytest.approx(0.013)
    assert found.time_ns is not None


def test_preemption_of_v0(tmp_path):
    log = serverlogs.read(
        tmp_path,
        "WARNING 01-02 03:04:05 scheduler.py:1754] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode "
        "because there is not enough KV cache space.",
        V0,
    )
    assert [event.kind for event in log.events] == [EventKind.RETRACTION]


def test_trtllm_settings_and_lines_that_lack_the_batch(tmp_path):
    oldest = serverlogs.trtllm(1, 8).replace("num_scheduled_requests = 8, ", "")
    log = serverlogs.read(
        tmp_path,
        "[01/02/2026-03:04:05] [TRT-LLM] [I] LLM args: max_batch_size=16, max_num_tokens=8192",
        "max_batch_size=99 of something else",
        oldest,
        "iter = 2, currank_total_requests = 8/8, states = {}",
    )
    assert [(item.name, item.value) for item in log.settings] == [("running_cap", 16)]
    assert [sample.running for sample in log.samples] == [8]


def test_a_date_that_is_none(tmp_path):
    line = serverlogs.decode(0, 8, 28).replace("2026-01-02", "2026-13-45")
    assert serverlogs.sample(tmp_path, line).time_ns is None

"""Scraped metrics: text of one scrape or several, and the query API's answer."""

import json

import pytest
import serverlogs

from traceaudit.errors import TraceFormatError
from traceaudit.ingest.serverlog.reader import read_server_log
from traceaudit.model.serverlines import SampleKind, Software


def vllm_text(running, tokens, latency_sum, count, *, stamp=""):
    """Write a scrape: `count` outputs that took `latency_sum` seconds in all."""
    labels = '{engine="0",model_name="m"}'
    return "\n".join(
        [
            "# HELP vllm:num_requests_running Number of requests in model execution batches.",
            "# TYPE vllm:num_requests_running gauge",
            f"vllm:num_requests_running{labels} {running}{stamp}",
            f"vllm:num_requests_waiting{labels} 2.0{stamp}",
            f"vllm:kv_cache_usage_perc{labels} 0.25{stamp}",
            f"vllm:generation_tokens_total{labels} {tokens}{stamp}",
            f'vllm:inter_token_latency_seconds_bucket{{engine="0",le="0.01",model_name="m"}} 0.0{stamp}',
            f"vllm:inter_token_latency_seconds_sum{labels} {latency_sum}{stamp}",
            f"vllm:inter_token_latency_seconds_count{labels} {count}{stamp}",
        ]
    )


def test_one_scrape_gives_the_mean_since_the_start(tmp_path):
    found = serverlogs.sample(tmp_path, vllm_text(8.0, 4000, 80.0, 4000))
    assert (found.kind, found.software, found.engine) == (SampleKind.SCRAPE, Software.VLLM, "Engine 000")
    assert (found.running, found.queue, found.cache_frac) == (8, 2, 0.25)
    assert (found.step_ns, found.tokens_per_second, found.time_ns) == (20_000_000, None, None)


@pytest.mark.parametrize(
    "lines",
    [
        (
            "2026-01-02T03:04:05+00:00",
            vllm_text(8, 4000, 80, 4000),
            "2026-01-02T03:04:15+00:00",
            vllm_text(8, 7200, 112, 7200),
        ),
        (vllm_text(8, 4000, 80, 4000, stamp=" 1767323045000"), vllm_text(8, 7200, 112, 7200, stamp=" 1767323055000")),
        (vllm_text(8, 4000, 80, 4000, stamp=" 1767323045.0"), vllm_text(8, 7200, 112, 7200, stamp=" 1767323055.0")),
    ],
    ids=["dates between", "milliseconds", "seconds"],
)
def test_two_scrapes_give_differences(tmp_path, lines):
    # 3200 tokens in 10 s; 32 s of waiting over 3200 outputs
    first, second = serverlogs.read(tmp_path, *lines).samples
    assert second.tokens_per_second == 320
    assert second.step_ns == 10_000_000
    assert second.time_ns - first.time_ns == 10_000_000_000


def test_scrapes_without_times_are_cut_where_a_series_comes_again(tmp_path):
    found = serverlogs.read(tmp_path, vllm_text(8, 4000, 80, 4000), vllm_text(9, 7200, 112, 7200)).samples
    assert [(s.running, s.step_ns, s.tokens_per_second) for s in found] == [
        (8, 20_000_000, None),
        (9, 10_000_000, None),
    ]


def test_a_counter_that_was_set_back(tmp_path):
    found = serverlogs.read(tmp_path, vllm_text(8, 4000, 80, 4000), vllm_text(8, 100, 1, 100)).samples
    assert found[1].step_ns is None


def test_sglang_with_dp_ranks(tmp_path):
    def rank(number):
        labels = f'{{dp_rank="{number}",model_name="m",pp_rank="0",tp_rank="{number}"}}'
        return [
            f"sglang_num_running_reqs{labels} 8",
            f"sglang_num_queue_reqs{labels} 0",
            f"sglang_token_usage{labels} 0.1",
            f"sglang_gen_throughput{labels} 160.0",
            f"sglang_spec_accept_length{labels} 2.5",
            f"sglang_is_cuda_graph{labels} 1.0",
            f"sglang_inter_token_latency_seconds_sum{labels} 20",
            f"sglang_inter_token_latency_seconds_count{labels} 1000",
        ]

    found = serverlogs.read(tmp_path, *rank(0), *rank(1)).samples
    assert [(s.engine, s.running, s.tokens_per_second, s.accept_length, s.graph) for s in found] == [
        ("DP0", 8, 160, 2.5, True),
        ("DP1", 8, 160, 2.5, True),
    ]
    assert found[0].step_ns == 50_000_000  # SGLang divides by the tokens of an output: 20 ms x 2.5


@pytest.mark.parametrize(
    ("text", "software", "running"),
    [
        ("tgi_batch_current_size 5\ntgi_queue_size 1\n", Software.TGI, 5),
        ('trtllm_num_requests_running{model_name="m"} 6\n', Software.TRTLLM, 6),
        ('lmdeploy:num_requests_running{engine="1"} 7 # exemplar\n', Software.LMDEPLOY, 7),
    ],
)
def test_other_servers(tmp_path, text, software, running):
    found = serverlogs.sample(tmp_path, text)
    assert (found.software, found.running) == (software, running)


def api(*series):
    document = {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}
    return json.dumps(document)


def test_the_query_api(tmp_path):
    metric = {"engine": "0", "instance": "a:8000"}
    found = serverlogs.read(
        tmp_path,
        api(
            {
                "metric": {"__name__": "vllm:num_requests_running", **metric},
                "values": [[1767323045, "8"], [1767323055, "8"]],
            },
            {
                "metric": {"__name__": "vllm:generation_tokens_total", **metric},
                "values": [[1767323045, "0"], [1767323055, "3200"]],
            },
        ),
    ).samples
    assert [(s.running, s.tokens_per_second, s.process) for s in found] == [(8, None, "a:8000"), (8, 320, "a:8000")]


@pytest.mark.parametrize(
    "text",
    [
        '{"status":"success","data":{"result":[{"metric":{}}]}}',
        '{"status":"error"}',
        '{"data":' + "[" * 100_000,
        '{"data": {"result": [{"metric": {}, "values": [["a", "b"]]}]}}',
        '{"data": {"result": 5}}',
    ],
)
def test_damaged_answers(tmp_path, text):
    with pytest.raises(TraceFormatError):
        read_server_log([serverlogs.write(tmp_path, text)])


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300", "abc"])
def test_values_that_are_no_count(tmp_path, value):
    text = f"vllm:num_requests_running 8\nvllm:num_requests_waiting {value}\n"
    assert serverlogs.sample(tmp_path, text).queue is None


def test_a_log_is_preferred_to_scrapes(tmp_path):
    log = read_server_log(
        [
            serverlogs.write(tmp_path, serverlogs.vllm(0, 8, 310)),
            serverlogs.write(tmp_path, vllm_text(9, 1, 1, 1), name="metrics.prom"),
        ]
    )
    assert ([sample.running for sample in log.samples], log.others) == ([8], 1)

"""Results of benchmarks in the shapes that their tools write, and the step times that follow."""

import json
from pathlib import Path

import pytest

from traceaudit.errors import ConfigError, TraceFormatError
from traceaudit.ingest import benchmark
from traceaudit.ingest.benchmark import BenchmarkTool, read_benchmark, step_wall

SGLANG = {
    "tag": None,
    "backend": "sglang",
    "request_rate": float("inf"),
    "max_concurrency": 16,
    "duration": 120.5,
    "completed": 64,
    "request_throughput": 0.53,
    "output_throughput": 28.0,
    "total_throughput": 40.0,
    "mean_tpot_ms": 285.5,
    "concurrency": 15.2,
    "accept_length": None,
}
VLLM = {
    "endpoint_type": "openai",
    "backend": "vllm",
    "request_rate": "inf",
    "max_concurrency": None,
    "duration": 120.5,
    "completed": 64,
    "request_throughput": 0.53,
    "output_throughput": 112.280702,
    "total_token_throughput": 200.0,
    "mean_tpot_ms": 10.25,
    "spec_decode_acceptance_length": 2.5,
}
ONE_BATCH = {
    "run_name": "default",
    "batch_size": 16,
    "input_len": 1024,
    "output_len": 16,
    "prefill_latency": 0.12345,
    "median_decode_latency": 0.01234,
    "median_decode_throughput": 1296.6,
    "overall_throughput": 2500.0,
}
ONE_BATCH_SERVER = {
    "run_name": "default",
    "batch_size": 8,
    "latency": 1.5,
    "output_throughput": 1600.0,
    "last_ttft": 0.2,
    "acc_length": 2.0,
}


def written(folder: Path, *runs: object) -> str:
    path = folder / "result.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    return str(path)


def without(run: dict[str, object], *keys: str) -> dict[str, object]:
    return {key: value for key, value in run.items() if key not in keys}


def test_sglang_serving(tmp_path: Path) -> None:
    path = written(tmp_path, SGLANG)
    result = read_benchmark(path)
    assert (result.tool, result.where) == (BenchmarkTool.SGLANG_SERVING, path)
    assert (result.output_throughput, result.concurrency, result.max_concurrency) == (28.0, 15.2, 16)
    assert (result.accept_length, result.mean_tpot_ns) == (None, 285_500_000)
    wall = step_wall(result)
    assert wall.step_ns == 285_500_000
    assert wall.source == f"mean time per output token (sglang bench_serving, {path})"


def test_vllm_serving_with_speculation(tmp_path: Path) -> None:
    result = read_benchmark(written(tmp_path, VLLM))
    assert (result.tool, result.accept_length, result.max_concurrency) == (BenchmarkTool.VLLM_SERVING, 2.5, None)
    # 10.25 ms a token, 2.5 tokens a step.
    assert step_wall(result).step_ns == 25_625_000
    assert "accept length 2.5" in step_wall(result).source


def test_a_known_batch_decides_before_the_clients_view(tmp_path: Path) -> None:
    result = read_benchmark(written(tmp_path, SGLANG))
    # 8 / 28 s, as the server's log says, where the client kept 16 in flight.
    wall = step_wall(result, running=8)
    assert wall.step_ns == 285_714_286
    assert wall.source.startswith("8 requests at once, as given / 28 tokens/s")


def test_running_times_accepted_over_throughput(tmp_path: Path) -> None:
    result = read_benchmark(written(tmp_path, without(VLLM, "spec_decode_acceptance_length")))
    # 64 / 112.280702 s.
    assert step_wall(result, running=64).step_ns == pytest.approx(570_000_000, abs=10)
    result = read_benchmark(written(tmp_path, VLLM))
    assert step_wall(result, running=64).step_ns == pytest.approx(1_425_000_000, abs=25)


def test_one_batch_times_its_steps(tmp_path: Path) -> None:
    result = read_benchmark(written(tmp_path, ONE_BATCH))
    assert (result.tool, result.batch, result.decode_step_ns) == (BenchmarkTool.SGLANG_ONE_BATCH, 16, 12_340_000)
    assert step_wall(result).step_ns == step_wall(result, running=4).step_ns == 12_340_000


def test_one_batch_against_a_server(tmp_path: Path) -> None:
    result = read_benchmark(written(tmp_path, ONE_BATCH_SERVER))
    assert result.tool is BenchmarkTool.SGLANG_ONE_BATCH_SERVER
    # 8 requests x 2 tokens / 1600 tokens a second.
    assert step_wall(result).step_ns == 10_000_000


@pytest.mark.parametrize(
    ("absent", "step_ns", "said"),
    [
        (("mean_tpot_ms",), 542_857_143, "15.2 requests in flight, queue included"),  # 15.2 / 28
        (("mean_tpot_ms", "concurrency"), 571_428_571, "16 requests in flight at most"),  # 16 / 28
    ],
)
def test_what_is_left_when_there_is_no_time_per_token(
    tmp_path: Path, absent: tuple[str, ...], step_ns: int, said: str
) -> None:
    wall = step_wall(read_benchmark(written(tmp_path, without(SGLANG, *absent))))
    assert wall.step_ns == step_ns
    assert wall.source.startswith(said)


def test_a_result_without_any_step_time(tmp_path: Path) -> None:
    path = written(tmp_path, without(VLLM, "mean_tpot_ms"))
    with pytest.raises(ConfigError, match="no step time") as caught:
        step_wall(read_benchmark(path))
    assert caught.value.where == path


def test_zero_means_not_measured(tmp_path: Path) -> None:
    """With one output token a request there is no time between tokens, and the tools write 0."""
    assert read_benchmark(written(tmp_path, SGLANG | {"mean_tpot_ms": 0.0})).mean_tpot_ns is None


def test_the_last_run_of_several_counts(tmp_path: Path) -> None:
    path = written(tmp_path, SGLANG, SGLANG | {"mean_tpot_ms": 1.5})
    result = read_benchmark(path)
    assert (result.mean_tpot_ns, result.where) == (1_500_000, f"{path}, line 2")


def test_a_list_of_runs_and_a_pretty_document(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps([VLLM, SGLANG], indent=2), encoding="utf-8")
    assert read_benchmark(str(path)).where == f"{path}, item 1"
    path.write_text("\ufeff" + json.dumps(VLLM, indent=2), encoding="utf-8")
    assert read_benchmark(str(path)).tool is BenchmarkTool.VLLM_SERVING


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "empty", ""),
        ("\n \n", "empty", ""),
        ("[]", "empty", ""),
        ("5", "found a number", ""),
        ("null", "found null", ""),
        ("{} {", "not JSON", ", line 1"),
        ('{"output_throughput": 1}\n{"output_thr', "not JSON", ", line 2"),
        ("{}", "not a benchmark result", ""),
        ('{"traceEvents": []}', "not a benchmark result", ""),
        ('{"output_throughput": 3}', "not a benchmark result", ""),
        ("[" * 100_000, "not JSON", ", line 1"),
        ('{"output_throughput": ' + "9" * 5_000 + "}", "not JSON", ", line 1"),
    ],
)
def test_files_that_are_no_results(tmp_path: Path, text: str, message: str, place: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceFormatError, match=message) as caught:
        read_benchmark(str(path))
    assert caught.value.where == f"{path}{place}"


@pytest.mark.parametrize("value", ["28", True, -1, float("nan"), float("inf"), [28], 10**400, 1e-300, 1e300])
def test_values_that_are_no_positive_numbers(tmp_path: Path, value: object) -> None:
    with pytest.raises(ConfigError, match="output_throughput: expected a number above 0"):
        read_benchmark(written(tmp_path, SGLANG | {"output_throughput": value}))


@pytest.mark.parametrize("running", [0, -8, float("nan"), float("inf")])
def test_batches_that_are_no_positive_numbers(tmp_path: Path, running: float) -> None:
    result = read_benchmark(written(tmp_path, SGLANG))
    with pytest.raises(ConfigError, match="requests at once"):
        step_wall(result, running=running)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ConfigError, match="cannot read") as caught:
            read_benchmark(str(path))
        assert caught.value.where == str(path)
    monkeypatch.setattr(benchmark, "MAX_BYTES", 10)
    with pytest.raises(ConfigError, match="over the limit of 10"):
        read_benchmark(written(tmp_path, SGLANG))

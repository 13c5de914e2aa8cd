"""Names of the metrics that serving engines export, with ``:`` written as ``_`` as some scrapers do."""

from dataclasses import dataclass

from traceaudit.model.serverlines import Software

__all__ = ["NAMES", "MetricNames"]


@dataclass(frozen=True, slots=True)
class MetricNames:
    """Where one engine keeps what a `Sample` holds; None where it exports no such metric.

    Attributes
    ----------
    latency
        Histograms of the time between outputs of a request, newest name first, without ``_sum`` and ``_count``.
    latency_is_per_token
        Whether that time is divided by the tokens of the output (under speculation an output has several).
    """

    software: Software
    running: str
    queue: str
    cache: tuple[str, ...]
    tokens: str
    rate: str | None = None
    latency: tuple[str, ...] = ()
    latency_is_per_token: bool = False
    accept_length: str | None = None
    graph: str | None = None
    retracted: str | None = None


NAMES = (
    MetricNames(
        Software.SGLANG,
        running="sglang_num_running_reqs",
        queue="sglang_num_queue_reqs",
        cache=("sglang_token_usage", "sglang_full_token_usage", "sglang_swa_token_usage"),
        tokens="sglang_generation_tokens_total",
        rate="sglang_gen_throughput",
        latency=("sglang_inter_token_latency_seconds", "sglang_time_per_output_token_seconds"),
        latency_is_per_token=True,
        accept_length="sglang_spec_accept_length",
        graph="sglang_is_cuda_graph",
    ),
    MetricNames(
        Software.VLLM,
        running="vllm_num_requests_running",
        queue="vllm_num_requests_waiting",
        cache=("vllm_kv_cache_usage_perc", "vllm_gpu_cache_usage_perc"),
        tokens="vllm_generation_tokens_total",
        latency=("vllm_inter_token_latency_seconds", "vllm_time_per_output_token_seconds"),
        retracted="vllm_num_preemptions_total",
    ),
    MetricNames(
        Software.TRTLLM,
        running="trtllm_num_requests_running",
        queue="trtllm_num_requests_waiting",
        cache=("trtllm_kv_cache_utilization",),
        tokens="trtllm_generation_tokens_total",
    ),
    MetricNames(
        Software.LMDEPLOY,
        running="lmdeploy_num_requests_running",
        queue="lmdeploy_num_requests_waiting",
        cache=("lmdeploy_gpu_cache_usage_perc",),
        tokens="lmdeploy_generation_tokens_total",
    ),
    MetricNames(
        Software.TGI,
        running="tgi_batch_current_size",
        queue="tgi_queue_size",
        cache=(),
        tokens="tgi_request_generated_tokens_sum",
        latency=("tgi_request_mean_time_per_token_duration",),
        latency_is_per_token=True,
    ),
)

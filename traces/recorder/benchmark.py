"""A closed-loop client of the engine, and its result with the keys of SGLang's ``bench_serving``."""

import random
import statistics
import time
from collections.abc import Sequence
from itertools import pairwise

from recorder.serving import Engine, Request

__all__ = ["serve"]

NS_PER_MS = 1e6
NS_PER_S = 1e9


def serve(
    engine: Engine, *, clients: int, requests: int, prompt_tokens: int, output_tokens: tuple[int, int], seed: int
) -> dict[str, object]:
    """Keep ``clients`` requests in flight until all ``requests`` are answered; return the result.

    The lengths of the answers are drawn evenly from ``output_tokens``, both ends included.
    """
    lengths = random.Random(seed)
    left = requests - clients
    begin_ns = time.perf_counter_ns()
    for _ in range(clients):
        engine.send(Request(lengths.randint(*output_tokens)))
    done: list[Request] = []
    while engine.busy:
        for request in engine.step():
            done.append(request)
            if left:
                left -= 1
                engine.send(Request(lengths.randint(*output_tokens)))
    duration_ns = time.perf_counter_ns() - begin_ns
    return _result(done, clients, prompt_tokens, output_tokens, duration_ns)


def _result(
    done: Sequence[Request], clients: int, prompt_tokens: int, output_tokens: tuple[int, int], duration_ns: int
) -> dict[str, object]:
    least, most = output_tokens
    duration = duration_ns / NS_PER_S
    generated = sum(len(request.text) for request in done)
    prompted = prompt_tokens * len(done)
    latencies = [request.token_ns[-1] - request.sent_ns for request in done]
    first = [request.token_ns[0] - request.sent_ns for request in done]
    each = [
        (latency - begin) / (len(request.text) - 1)
        for request, latency, begin in zip(done, latencies, first, strict=True)
    ]
    gaps = [later - earlier for request in done for earlier, later in pairwise(request.token_ns)]
    return {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": float("inf"),
        "max_concurrency": clients,
        "sharegpt_output_len": None,
        "random_input_len": prompt_tokens,
        "random_output_len": most,
        "random_range_ratio": least / most,
        "duration": duration,
        "completed": len(done),
        "total_input_tokens": prompted,
        "total_output_tokens": generated,
        "total_output_tokens_retokenized": generated,
        "request_throughput": len(done) / duration,
        "input_throughput": prompted / duration,
        "output_throughput": generated / duration,
        **_spread("e2e_latency", latencies, (90, 99)),
        **_spread("ttft", first, (99,)),
        **_spread("tpot", each, (99,)),
        **_spread("itl", gaps, (95, 99)),
        "concurrency": sum(latencies) / duration_ns,
        "accept_length": None,
    }


def _spread(name: str, times_ns: Sequence[float], percentiles: tuple[int, ...]) -> dict[str, float]:
    times = [time_ns / NS_PER_MS for time_ns in times_ns]
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {
        f"mean_{name}_ms": statistics.fmean(times),
        f"median_{name}_ms": statistics.median(times),
        f"std_{name}_ms": statistics.pstdev(times),
        **{f"p{percent}_{name}_ms": cuts[percent - 1] for percent in percentiles},
    }

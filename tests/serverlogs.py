"""Writes server logs line by line, in the shape of each engine and version."""

import gzip
from datetime import UTC, datetime, timedelta

from traceaudit.analyses.serverlog.analysis import serverlog
from traceaudit.ingest.serverlog.reader import read_server_log
from traceaudit.model.serverlines import ServerLogOptions

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def stamp(second):
    return (START + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S")


def decode(second, running, rate, *, ranks="", queue=0, usage=0.01, extra="", graph=None, head=""):
    """Write a Decode line of SGLang 0.5.9 and later."""
    replay = "" if graph is None else f"cuda graph: {graph}, "
    return (
        f"{head}[{stamp(second)}{ranks}] Decode batch, #running-req: {running}, #token: {running * 190}, "
        f"token usage: {usage:.2f}, {extra}{replay}gen throughput (token/s): {rate:.2f}, #queue-req: {queue}"
    )


def prefill(second, running, *, ranks="", queue=0):
    return (
        f"[{stamp(second)}{ranks}] Prefill batch, #new-seq: 4, #new-token: 2048, #cached-token: 0, token usage: 0.01, "
        f"#running-req: {running}, #queue-req: {queue}, cuda graph: False, input throughput (token/s): 5120.00"
    )


def vllm(second, running, rate, *, engine="Engine 000: ", waiting=0, usage=1.3, pid=4242, extra="", prompt=0.0):
    """Write a stats line of vLLM 0.11."""
    clock = (START + timedelta(seconds=second)).strftime("%m-%d %H:%M:%S")
    return (
        f"(APIServer pid={pid}) INFO {clock} [loggers.py:127] {engine}Avg prompt throughput: {prompt:.1f} tokens/s, "
        f"Avg generation throughput: {rate:.1f} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, {extra}"
        f"GPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%"
    )


def trtllm(number, scheduled, *, rank=0, device="11.2345", requests="8/8", context=0, tokens=None, second=None):
    """Write an iteration line of TensorRT-LLM in its newer form; `device` is the time of the iteration before."""
    device = device if device == "N/A" else f"{device}ms"
    return (
        f"[01/02/2026-03:04:05] [TRT-LLM] [I] [_torch][RANK {rank}] iter = {number}, global_rank = {rank}, "
        f"rank = {rank}, "
        f"num_scheduled_requests = {scheduled}, kv_cache_util = 0.013, currank_total_requests = {requests}, "
        f"host_step_time = 12.3456ms, prev_device_step_time = {device}, "
        f"timestamp = {stamp(number // 80 if second is None else second)}, states = {{'num_ctx_requests': {context}, "
        f"'num_ctx_tokens': 0, 'num_generation_tokens': {scheduled if tokens is None else tokens}}}"
    )


def write(folder, *lines, name="server.log"):
    """Write lines into a file, compressed if its name says so, and return the path."""
    path = folder / name
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(path)


def read(folder, *lines):
    return read_server_log([write(folder, *lines)])


def sample(folder, line):
    """Return the only sample of a log of one line."""
    (found,) = read(folder, line).samples
    return found


def report(folder, *lines, expected=None, load=None):
    return serverlog(read(folder, *lines), ServerLogOptions(expected, load))

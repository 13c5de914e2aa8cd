"""Lines of SGLang in every shape they had."""

import pytest
import serverlogs

from traceaudit.model.serverlines import EventKind, SampleKind, Software

TAIL = "cuda graph: True, gen throughput (token/s): 412.55, #queue-req: 0"
DECODES = {
    "0.3.6": "Decode batch. #running-req: 8, #token: 2560, token usage: 0.01, gen throughput (token/s): 412.55, "
    "#queue-req: 0",
    "0.4.6": f"Decode batch. #running-req: 8, #token: 2560, token usage: 0.01, accept len: 2.31, pre-allocated usage: "
    f"0.00, {TAIL}",
    "0.4.8": f"Decode batch. #running-req: 8, #token: 2560, token usage: 0.01, accept len: 2.31, pre-allocated usage: "
    f"0.00, #retracted-req: 0, {TAIL}",
    "0.4.9": f"Decode batch. #running-req: 8, #full token: 2560, full token usage: 0.01, #swa token: 1024, swa token "
    f"usage: 0.03, {TAIL}, ",
    "0.5.4": f"Decode batch [1234], #running-req: 8, #token: 2560, token usage: 0.01, {TAIL}, ",
    "0.5.5": f"Decode batch, #running-req: 8, #token: 2560, token usage: 0.01, accept len: 2.31, accept rate: 0.66, "
    f"{TAIL}, ",
    "0.5.9": f"Decode batch, #running-req: 8, #token: 2560, token usage: 0.01, {TAIL}",
    "0.5.10 mfu": f"Decode batch, #running-req: 8, #token: 2560, token usage: 0.01, {TAIL}, est. decode TFLOPS/s (per "
    "GPU): 1.23, est. read BW (GB/s per GPU): 456.78, est. write BW (GB/s per GPU): 0.12",
    "0.5.11": f"Decode batch, #running-req: 8, #token: 2560, token usage: 0.01, {TAIL}, fwd occupancy: 97.10%",
    "iterations": f"Decode batch [77], #running-req: 8, #token: 2560, token usage: 0.01, {TAIL}",
    "mamba": "Decode batch, #running-req: 8, #full token: 2560, full token usage: 0.01, mamba num: 8, mamba usage: "
    f"0.02, {TAIL}",
    "npu": "Decode batch, #running-req: 8, #token: 2560, token usage: 0.66, npu graph: True, gen throughput (token/s): "
    "412.55, #queue-req: 0",
}


@pytest.mark.parametrize("version", DECODES)
def test_decode_lines(tmp_path, version):
    found = serverlogs.sample(tmp_path, f"[2026-01-02 03:04:05 TP0] {DECODES[version]}")
    assert (found.kind, found.software) == (SampleKind.DECODE, Software.SGLANG)
    assert (found.running, found.queue, found.tokens_per_second) == (8, 0, 412.55)
    assert found.graph is (None if version == "0.3.6" else True)
    assert found.accept_length == (2.31 if "accept len" in DECODES[version] else None)
    assert found.iteration == {"0.5.4": 1234, "iterations": 77}.get(version)


def test_the_fullest_pool_counts(tmp_path):
    found = serverlogs.sample(tmp_path, f"[2026-01-02 03:04:05 TP0] {DECODES['0.4.9']}")
    assert found.cache_frac == 0.03


def test_preallocated_space_is_no_pool(tmp_path):
    line = DECODES["0.4.6"].replace("pre-allocated usage: 0.00", "pre-allocated usage: 0.99")
    assert serverlogs.sample(tmp_path, f"[2026-01-02 03:04:05] {line}").cache_frac == 0.01


def test_requests_that_wait_for_their_cache(tmp_path):
    items = "pre-allocated usage: 0.10, #prealloc-req: 3, #transfer-req: 2, #retracted-req: 1, "
    found = serverlogs.sample(tmp_path, serverlogs.decode(0, 8, 28, queue=5, extra=items))
    assert (found.queue, found.transfer, found.retracted) == (5, 5, 1)


@pytest.mark.parametrize(
    ("prefix", "engine", "rank"),
    [
        ("[2026-01-02 03:04:05]", "", (0, 0, 0, 0)),
        ("[2026-01-02 03:04:05 TP0]", "", (0, 0, 0, 0)),
        ("[2026-01-02 03:04:05 DP3 TP3]", "DP3", (0, 0, 3, 0)),
        ("[2026-01-02 03:04:05 DP1 TP4 EP4]", "DP1", (0, 0, 4, 4)),
        ("[2026-01-02 03:04:05 DP1 PP1 TP2 EP2]", "DP1", (1, 0, 2, 2)),
        ("[2026-01-02 03:04:05 DP1 PP0 ATTN_CP1 MOE_DP0 TP2 EP2]", "DP1", (0, 1, 2, 2)),
        ("[2026-01-02 03:04:05.250 TP0]", "", (0, 0, 0, 0)),
    ],
)
def test_prefixes(tmp_path, prefix, engine, rank):
    found = serverlogs.sample(tmp_path, f"{prefix} {DECODES['0.5.9']}")
    assert (found.engine, found.rank) == (engine, rank)
    assert found.time_resolution_ns == (1_000_000 if ".250" in prefix else 1_000_000_000)


@pytest.mark.parametrize(
    ("head", "process"),
    [
        ("(SchedulerActor pid=77, ip=10.0.0.2) ", "pid 77 ip 10.0.0.2"),
        ("decode-1  | ", "decode-1"),
        ("[pod/decode-0/server] ", "pod/decode-0/server"),
        ("Jan 02 03:04:05 host sglang[1234]: ", "pid 1234"),
        ("2026-01-02T03:04:05.123456789Z stderr F ", ""),
        ("\x1b[36m(SchedulerActor pid=77)\x1b[0m ", "pid 77"),
        ("Capturing batches: 100%|####| 35/35 [00:05<00:00]\r", ""),
    ],
)
def test_what_stands_before_the_prefix(tmp_path, head, process):
    found = serverlogs.sample(tmp_path, f"{head}[2026-01-02 03:04:05 DP0 TP0] {DECODES['0.5.9']}")
    assert (found.process, found.engine, found.running) == (process, "DP0", 8)
    assert "\x1b" not in found.line.text


def test_docker_json(tmp_path):
    line = '{"log":"\\u001b[36m[2026-01-02 03:04:05 TP0] ' + DECODES["0.5.9"] + '\\n","stream":"stderr"}'
    found = serverlogs.sample(tmp_path, line)
    assert (found.running, found.queue) == (8, 0)


def test_two_messages_in_one_line(tmp_path):
    line = f"[2026-01-02 03:04:05 DP0 TP0] {DECODES['0.5.5']}[2026-01-02 03:04:06 DP1 TP1] {DECODES['0.5.9']}"
    found = serverlogs.read(tmp_path, line).samples
    assert [(sample.engine, sample.running) for sample in found] == [("DP0", 8), ("DP1", 8)]
    assert found[1].time_ns - found[0].time_ns == 1_000_000_000


def test_a_line_without_its_prefix(tmp_path):
    found = serverlogs.sample(tmp_path, f"scheduler INFO {DECODES['0.5.9']}")
    assert (found.running, found.time_ns) == (8, None)


@pytest.mark.parametrize(
    "line",
    [
        "Prefill batch. #new-seq: 4, cache hit rate: 0.00%, token usage: 0.01, #running-req: 4, #queue-req: 12",
        "Prefill batch [9], #new-seq: 4, #new-token: 2048, token usage: 0.01, #running-req: 4, #queue-req: 12, ",
        "Prefill batch, full token usage: 0.01, swa token usage: 0.02, #running-req: 4, #queue-req: 12",
    ],
)
def test_prefill_lines(tmp_path, line):
    log = serverlogs.read(tmp_path, f"[2026-01-02 03:04:04] {line}", serverlogs.decode(0, 8, 28))
    assert [(sample.kind, sample.running, sample.queue) for sample in log.samples] == [
        (SampleKind.PREFILL, 4, 12),
        (SampleKind.DECODE, 8, 0),
    ]


def test_settings_and_events(tmp_path):
    log = serverlogs.read(
        tmp_path,
        "[2026-01-02 03:04:00] server_args=ServerArgs(tp_size=8, dp_size=8, max_running_requests=128, "
        "decode_log_interval=20, cuda_graph_max_bs=None)",
        "[2026-01-02 03:04:01 DP0 TP0] Capture cuda graph bs [1, 2, 4, 8, 16]",
        "[2026-01-02 03:04:02 DP0 TP0] max_total_num_tokens=52000, max_running_requests=16, context_len=131072",
        serverlogs.decode(0, 8, 28, ranks=" DP0 TP0"),
        "[2026-01-02 03:04:09 DP0 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, "
        "#new_tokens_gained: 512, #new_token_ratio: 0.5012 -> 0.9800",
    )
    assert [(item.name, item.value, item.engine) for item in log.settings] == [
        ("tp_size", 8, ""),
        ("dp_size", 8, ""),
        ("running_cap_given", 128, ""),
        ("log_interval", 20, ""),
        ("graph_max_batch", 16, "DP0"),
        ("cache_tokens", 52000, "DP0"),
        ("running_cap", 16, "DP0"),
    ]
    assert [(event.kind, event.count, event.line.number) for event in log.events] == [
        (EventKind.START, None, 1),
        (EventKind.RETRACTION, 2, 5),
    ]


def test_the_line_of_the_founding_case(tmp_path):
    found = serverlogs.sample(
        tmp_path, "[2026-06-17 21:09:09 TP0] Decode batch, #running-req: 8, #full token: 2560, ..."
    )
    assert (found.running, found.queue, found.tokens_per_second) == (8, None, None)

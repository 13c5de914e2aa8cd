"""The founding case as inputs: a trace, the server's log, and what the benchmark said.

Eight requests run, 28 tokens/s, so a step of 8 / 28 s = 285.714 ms. Two kernels hold 78 % of the op time, and busy is
f = 0.4872 of the step, so that f s = 0.38 ::

    device   attention 54.286 | MoE 54.286 | others 30.623 |  idle 146.519 ms
    host     launch, synchronise ..........................  get_next_batch_to_run

The device is a whole RTX PRO 6000 Blackwell: 188 multiprocessors.
"""

import json

from builders import TraceBuilder
from renderers import document, dump

STEP_US = 285_714
ATTENTION_US = 54_286
MOE_US = 54_286
OTHER_US = 30_623
DEVICE = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
LINE = (
    "[2026-06-17 21:{minute:02d}:{second:02d} TP0] Decode batch, #running-req: 8, #full token: 2560, "
    "full token usage: 0.00, #swa token: 2048, swa token usage: 0.00, cuda graph: True, "
    "gen throughput (token/s): 28.00, #queue-req: 8"
)


def trace(*, steps=4, others=1):
    """The founding case's trace; `others` splits the other kernels into so many names."""
    made = TraceBuilder(device=DEVICE)
    for number in range(steps):
        at = number * STEP_US
        made.annotation("step[decode bs=8]", at=at, dur=STEP_US)
        made.launch(at=at + 10).kernel(
            "_tiled_sparse_decode_kernel", at=at + 100, dur=ATTENTION_US, grid=[64, 1, 1], block=[128, 1, 1]
        )
        start = at + 100 + ATTENTION_US
        made.launch(at=at + 20).kernel(
            "moe_slot_gemv_kernel", at=start, dur=MOE_US, grid=[4096, 1, 1], block=[128, 1, 1]
        )
        start += MOE_US
        each = OTHER_US // others
        for index in range(others):
            made.launch(at=at + 30 + 5 * index).kernel(
                f"other_{index}", at=start, dur=each, grid=[512, 1, 1], block=[128, 1, 1]
            )
            start += each
        made.call("cudaStreamSynchronize", at=at + 60 + 5 * others, dur=start - at - 50 - 5 * others)
        made.annotation("get_next_batch_to_run", at=start + 20, dur=at + STEP_US - start - 30)
    return made


def write_trace(folder, name="decode.json", **settings):
    made = document(trace(**settings), "kineto-2.6")
    for entry in made.head["deviceProperties"]:
        entry.update(numSms=188, totalGlobalMem=101_973_622_784, computeMajor=12, computeMinor=0)
    path = folder / name
    path.write_text(dump(made))
    json.loads(path.read_text())
    return str(path)


def write_log(folder, *, rate=28.0, queue=8, name="server.log"):
    seconds = [round(40 * STEP_US * index / 1e6) for index in range(12)]
    lines = [LINE.format(minute=9 + second // 60, second=second % 60) for second in seconds]
    if rate is None:
        lines = [line.replace("gen throughput (token/s): 28.00, ", "") for line in lines]
    else:
        lines = [line.replace("28.00", f"{rate:.2f}") for line in lines]
    path = folder / name
    path.write_text("".join(line.replace("#queue-req: 8", f"#queue-req: {queue}") + "\n" for line in lines))
    return str(path)

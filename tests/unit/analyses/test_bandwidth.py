"""Achieved bandwidth on tiny traces: sources, ceilings, what cannot be true, and what limits a kernel."""

import re

import numpy as np
import pytest
from builders import TraceBuilder
from views import trace_of, view_of, views_of

from traceaudit.analyses.attribution import attribute, chosen_ops
from traceaudit.analyses.bandwidth import other_run, peaks_of, rate_kernels, sources_of, with_parts
from traceaudit.analyses.bandwidth.judge import Facts, bound_of, underfilled
from traceaudit.model.bytes.fromtrace import RunFacts
from traceaudit.model.bytes.roles import _expert_weights
from traceaudit.model.enclosing import enclosing_rows
from traceaudit.model.kernelgroups import GroupBy, kernel_groups
from traceaudit.model.kerneloptions import KernelOptions, PeakOptions
from traceaudit.model.kernelspec import KernelSpec, expression
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.workload import Workload
from traceaudit.model.results.kernels import Bound, LaunchUse, MemoryLevel
from traceaudit.model.schema import HostCategory
from traceaudit.report.kernel_words import like_text

BF16 = "c10::BFloat16"
MM = {"Input Dims": [[16, 2048], [2048, 3072]], "Input type": [BF16, BF16]}
ADD = "triton_poi_fused_add_0"
MM_BYTES = (16 * 2048 + 2048 * 3072 + 16 * 3072) * 2


def spec(match, moved, flop=None):
    made = [None if text is None else expression(str(text), "spec.toml, line 2") for text in (moved, flop)]
    return KernelSpec(re.compile(match), *made, "spec.toml, line 1")


def report(view, other=None, **options):
    settings = KernelOptions(**options)
    sourced = sources_of(view, settings, None if other is None else other_run(other, KernelOptions()))
    frames = enclosing_rows(view.trace, view.ops, HostCategory.PYTHON)
    groups = kernel_groups(view, chosen_ops(view, None), settings.group_by, sourced.around, frames)
    peaks, ceilings = peaks_of(view, settings.peaks)
    device, findings = rate_kernels(view, attribute(view, groups), groups, sourced.work, peaks, ceilings)
    counted = np.flatnonzero(view.windows.step >= 0)
    device = with_parts(view, device, groups, sourced.work, peaks, ceilings, counted)
    return device, [finding.code for finding in findings], sourced.notes


def only(view, **options):
    device, codes, _ = report(view, **options)
    (row,) = device.kernels
    return row, codes


def launches(*durations, name="gemm_kernel", gap=50, **args):
    made = TraceBuilder(device=args.pop("device", "NVIDIA H100 80GB HBM3"))
    at = 0
    for dur in durations:
        made.launch(at=at).kernel(name, at=at + 10, dur=dur, **args)
        at += gap + dur
    return made


def eager(*ops):
    """Ops of (name, details, [(kernel, µs)])."""
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    at = 0
    for name, details, kernels in ops:
        made.op(name, at=at, dur=90, **details)
        for number, (kernel, dur) in enumerate(kernels):
            made.launch(at=at + 2 + 6 * number).kernel(kernel, at=at + 12 + 12 * number, dur=dur)
        at += 100
    return made


def test_the_op_around_the_launch_tells_the_bytes():
    row, codes = only(view_of(eager(("aten::mm", MM, [("nvjet_gemm", 6)]))))
    assert (row.rates.moved_bytes, row.rates.bytes_source, row.op) == (MM_BYTES, "shape", "aten::mm")
    assert row.rates.achieved_gbps == pytest.approx(MM_BYTES / 6000)
    assert row.rates.peak_frac == pytest.approx(MM_BYTES / 6000 / 3350)
    assert row.rates.flop == 2 * 16 * 2048 * 3072
    assert row.rates.memory_level is MemoryLevel.DRAM
    assert (row.bound, codes) == (Bound.MEMORY, [])


def test_a_call_is_counted_once_however_many_kernels_it_runs():
    made = eager(("aten::mm", MM, [("nvjet_splitK_gemm", 6), ("splitKreduce_kernel", 2)]))
    device, _, _ = report(view_of(made))
    moved = {row.name: row.rates.moved_bytes for row in device.kernels}
    assert moved == {"nvjet_splitK_gemm": MM_BYTES - 16 * 3072 * 2, "splitKreduce_kernel": 16 * 3072 * 2}


def test_an_op_around_others_does_not_count_them_again():
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    made.op("aten::linear", at=0, dur=50, **{**MM, "Input Dims": [[16, 2048], [3072, 2048]]})
    made.op("aten::mm", at=5, dur=20, **MM)
    made.launch(at=8).kernel("nvjet_gemm", at=30, dur=6)
    made.launch(at=30).kernel("mystery_epilogue", at=40, dur=3)
    device, _, _ = report(view_of(made))
    assert sum(row.rates.moved_bytes or 0 for row in device.kernels) == MM_BYTES
    assert device.covered_busy_frac == pytest.approx(6 / 9)


def test_an_op_without_a_model_takes_that_of_the_op_around_it():
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    made.op("aten::linear", at=0, dur=50, **{**MM, "Input Dims": [[16, 2048], [3072, 2048]]})
    made.op("custom::gemm", at=5, dur=20)
    made.launch(at=8).kernel("custom_gemm", at=30, dur=6)
    assert only(view_of(made))[0].rates.moved_bytes == MM_BYTES


def test_the_sources_have_an_order():
    annotated = {**MM, "kernel_num_gb": 0.001}
    for details, specs, source in (
        (MM, (), "shape"),
        (MM, (spec("gemm", 1000),), "spec"),
        (annotated, (spec("gemm", 1000),), "annotated"),
    ):
        row, _ = only(view_of(eager(("aten::mm", details, [("gemm", 6)]))), specs=specs)
        assert row.rates.bytes_source == source


def test_bytes_of_the_users_file_keep_the_flop_of_the_shapes():
    row, _ = only(view_of(eager(("aten::mm", MM, [("gemm", 6)]))), specs=(spec("gemm", 1000),))
    assert (row.rates.moved_bytes, row.rates.flop) == (1000, 2 * 16 * 2048 * 3072)


def test_expressions_see_the_launch_and_its_op():
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    made.op("custom::op", at=0, dur=20, **MM)
    made.launch(at=2).kernel("custom", at=12, dur=6, grid=[64, 1, 1], block=[128, 1, 1])
    rules = (spec("cust", "grid[0] * threads + nbytes(1) + batch"),)
    row, _ = only(view_of(made), specs=rules, run=RunFacts(batch=16))
    assert row.rates.moved_bytes == 64 * 128 + 2048 * 3072 * 2 + 16
    assert only(view_of(made), specs=rules)[0].rates.moved_bytes is None


@pytest.mark.parametrize(
    ("name", "moved"),
    [
        ("Memcpy DtoD (Device -> Device)", 2_000_000),
        ("Memcpy HtoD (Pinned -> Device)", 1_000_000),
        ("Memcpy DtoH (Device -> Pageable)", 1_000_000),
    ],
)
def test_copies_within_the_device_read_and_write(name, moved):
    made = TraceBuilder()
    made.launch("cudaMemcpyAsync", at=0).memcpy(name, at=10, dur=5, size=1_000_000)
    row, _ = only(view_of(made))
    assert (row.rates.moved_bytes, row.rates.bytes_source, row.bound) == (moved, "reported", None)


def test_five_norms_out_of_cache_are_no_error():
    """67 MB in 6.4 µs on a GB200 with 126 MB of L2: 131 % of 8 TB/s."""
    norms = launches(*[6.4] * 5, name="rms_norm_kernel", device="NVIDIA GB200")
    gb200 = PeakOptions(gbps=8000.0)
    view = view_of(norms)
    row, codes = only(view, specs=(spec("rms", 67_108_864),), peaks=gb200)
    assert row.rates.peak_frac == pytest.approx(1.3107, rel=1e-4)
    # The builder's devices have 132 multiprocessors, so that the table refuses them a GB200's cache.
    assert codes == ["over_peak"]


def test_a_working_set_in_cache_that_is_used_again_explains_a_rate_above_peak():
    view = view_of(launches(*[4.0] * 5, name="rms_norm_kernel"))
    row, codes = only(view, specs=(spec("rms", 30_000_000),))
    assert row.rates.peak_frac == pytest.approx(30_000_000 / 4000 / 3350)
    assert (row.flags, codes) == (("cache_resident",), ["cache_resident"])


@pytest.mark.parametrize(("moved", "count"), [(30_000_000, 1), (90_000_000, 5)])
def test_what_no_cache_explains_is_above_peak(moved, count):
    view = view_of(launches(*[4.0] * count, name="moe_kernel"))
    row, codes = only(view, specs=(spec("moe", moved),))
    assert row.rates.peak_frac > 1  # never clipped
    assert codes == ["over_peak"]


def test_weights_of_many_layers_do_not_fit_in_cache_together():
    """Twelve products a step, 12.6 MB of other weights each, at 152 % of the peak: no cache explains that."""
    made = eager(*[("aten::mm", MM, [("nvjet_gemm", 2.5)])] * 12)
    _, codes = only(view_of(made, steps=None))
    assert codes == ["over_peak"]


def test_coarse_times_do_not_make_a_rate_impossible():
    view = view_of(launches(1, name="copy_kernel"))
    assert only(view, specs=(spec("copy", 4_900_000),))[1] == ["over_peak"]


def test_a_starved_kernel_is_flagged_with_and_without_bytes():
    """The founding kernel: 64 programs on 132 multiprocessors, 34.6 MB in 4.65 ms."""
    made = launches(4650, name="starved_attention_kernel", grid=[64, 1, 1], block=[128, 1, 1])
    row, codes = only(view_of(made))
    assert (row.bound, row.flags, codes) == (Bound.LATENCY, ("underfilled_grid",), ["underfilled_grid"])
    row, codes = only(view_of(made), specs=(spec("starved", 34_603_008 + 1_048_576),))
    assert row.rates.achieved_gbps == pytest.approx(7.67, rel=1e-2)
    assert (row.bound, codes) == (Bound.LATENCY, ["underfilled_grid"])
    assert "64 blocks on 132 multiprocessors" in row.bound_rule


def test_activations_of_small_ops_live_in_cache():
    add = {"Input Dims": [[16, 2048], [16, 2048], []], "Input type": [BF16, BF16, "Scalar"]}
    row, _ = only(view_of(eager(("aten::add", add, [("add_kernel", 1.3)]))))
    assert (row.rates.memory_level, row.bound) == (MemoryLevel.L2, Bound.LAUNCH)


def test_shapes_are_borrowed_in_order():
    ops = [
        ("aten::mm", MM, [("gemm_a", 6)]),
        ("aten::relu", {"Input Dims": [[64]], "Input type": ["float"]}, [("relu", 2)]),
    ]
    replay = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    graph = replay.graph_launch(at=0, dur=20)
    for number, name in enumerate(("gemm_a", "new_kernel", "relu", "gemm_a")):
        graph.kernel(name, at=30 + 10 * number, dur=5)
    device, _, notes = report(view_of(replay), other=view_of(eager(*ops, ops[0])))
    moved = {row.name: row.rates.moved_bytes for row in device.kernels}
    assert moved == {"gemm_a": 2 * MM_BYTES, "relu": 512, "new_kernel": None}
    assert notes[0].startswith("shapes from trace.json: 3 of 4 kernels")


def attending(grid):
    """16 query heads and 4 heads of keys and values of 128, for 2 requests of 1024 tokens, in 100 µs."""
    query, cache = [2, 16, 1, 128], [2, 4, 1024, 128]
    details = {"Input Dims": [query, cache, cache], "Input type": [BF16] * 3}
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    made.op("aten::_scaled_dot_product_flash_attention", at=0, dur=90, **details)
    launch = made.launch(at=2)
    launch.kernel("flash_fwd", at=12, dur=100, grid=grid)
    launch.kernel("flash_combine", at=120, dur=10, grid=[1, 16, 2])
    return only_flags(view_of(made))


def only_flags(view):
    device, codes, _ = report(view)
    return {row.name: row.flags for row in device.kernels}, codes


@pytest.mark.parametrize(
    ("grid", "again"),
    [
        ([16, 1, 1], True),  # a block for each query head
        ([1, 32, 1], True),  # of both requests
        ([1, 16, 2], True),
        ([1, 4, 2], False),  # a block for each head of keys and values
        ([1, 16, 8], False),  # 16 parts of the sequence, and 4 heads of 2 requests
        ([132, 1, 1], False),  # says nothing
    ],
)
def test_blocks_of_query_heads_that_share_keys_read_them_again(grid, again):
    flags, codes = attending(grid)
    assert ("re_reads" in flags["flash_fwd"], "re_reads" in codes) == (again, again)
    assert "re_reads" not in flags["flash_combine"]  # it adds up, and reads no keys


def test_another_grid_is_another_shape_but_for_generated_kernels():
    fused = {
        "Input Dims": [[64], [64], []],
        "Input type": ["float", "float", "Scalar"],
        "Concrete Inputs": ["", "", "64"],
    }
    other = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    for at, name, kernel, details in ((0, "aten::mm", "gemm_a", MM), (100, ADD, ADD, fused)):
        other.op(name, at=at, dur=90, **details)
        other.launch(at=at + 2).kernel(kernel, at=at + 12, dur=5, grid=[8, 1, 1])
    replay = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    graph = replay.graph_launch(at=0, dur=20)
    graph.kernel("gemm_a", at=30, dur=5, grid=[16, 1, 1])
    graph.kernel(ADD, at=40, dur=5, grid=[4, 1, 1])
    device, _, notes = report(view_of(replay), other=view_of(other))
    moved = {row.name: row.rates.moved_bytes for row in device.kernels}
    assert moved == {"gemm_a": None, ADD: 2 * 64 * 4}
    assert "1 of 2 kernels" in notes[0]
    assert notes[0].endswith("1 of them by name alone; 1 have it with another grid, so another shape, and stay unknown")


SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
}
LAYER = ["rms_norm", "nvjet_qkv", "flash_fwd", "flash_combine", "nvjet_o", "nvjet_up", "silu_and_mul", "nvjet_down"]


def test_roles_come_from_the_model():
    replay = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    graph = replay.graph_launch(at=0, dur=20)
    for number, name in enumerate([*LAYER, *LAYER, "nvjet_head", "mystery"]):
        graph.kernel(name, at=30 + 10 * number, dur=5, grid=[8, 1, 1])
    model = architecture(SMALL, name="small")
    device, _, notes = report(view_of(replay), model=model, workload=Workload((100,) * 8))
    found = {row.name: (row.role, row.rates.moved_bytes) for row in device.kernels}
    weights = {"nvjet_qkv": (64, 128), "nvjet_o": (64, 64), "nvjet_up": (64, 256), "nvjet_down": (128, 64)}
    for name, (inner, columns) in weights.items():
        assert found[name][1] == 2 * 2 * (inner * columns + 8 * inner + 8 * columns)
    assert found["nvjet_head"] == ("lm_head", 2 * (64 * 1000 + 8 * 64 + 8 * 1000))
    assert found["flash_fwd"] == ("attention", 2 * (8 * 100 * 2 * 32 + 8 * 64) * 2 - 0)
    assert found["flash_combine"] == ("attention", 2 * 8 * 64 * 2)
    assert found["silu_and_mul"][0] == "activation"
    assert found["mystery"] == (None, None)
    assert notes == ("model small: 9 of 9 matrix products have a role in the 2 layers",)


def replay_of(*names):
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    graph = made.graph_launch(at=0, dur=20)
    for number, name in enumerate(names):
        graph.kernel(name, at=30 + 10 * number, dur=5, grid=[8, 1, 1])
    return view_of(made)


def test_a_kernel_that_runs_once_a_layer_is_no_attention_where_another_is():
    """Two layers with three multiplications each are no model of six layers."""
    layer = ["nvjet_qkv", "mul", "mul", "flash_fwd", "nvjet_o", "mul", "nvjet_up", "nvjet_down"]
    made = architecture(SMALL | {"num_hidden_layers": 6}, name="other")
    device, _, notes = report(replay_of(*layer, *layer, "nvjet_head"), model=made, workload=Workload((100,) * 8))
    assert {row.role for row in device.kernels} == {None}
    assert notes[0].startswith("model other: a step shows 2 attention kernels and the model has 6 layers")


def test_two_products_of_experts_have_two_thirds_and_one_third_of_their_weights():
    moe = SMALL | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    layer = ["nvjet_qkv", "flash_fwd", "nvjet_o", "nvjet_router", "fused_moe_up", "silu_and_mul", "fused_moe_down"]
    view = replay_of(*layer, *layer, "nvjet_head")
    device, _, _ = report(view, model=architecture(moe, name="moe"), workload=Workload((100,) * 8))
    read = {row.name: row.rates.moved_bytes for row in device.kernels if row.role == "experts"}
    out = 2 * 8 * 64 * 2  # two layers, written by the second product
    assert read["fused_moe_up"] == pytest.approx(2 * (read["fused_moe_down"] - out), abs=4)


def test_a_kernel_whose_bytes_come_from_shapes_has_its_role_too():
    head = {"Input Dims": [[8, 64], [64, 999]], "Input type": [BF16, BF16]}  # no shape of the model's
    made = eager(
        *((f"mystery::{name}", {}, [(name, 5)]) for name in [*LAYER, *LAYER]), ("aten::mm", head, [("nvjet_head", 5)])
    )
    model = architecture(SMALL, name="small")
    device, _, notes = report(view_of(made), model=model, workload=Workload((100,) * 8))
    (row,) = (row for row in device.kernels if row.name == "nvjet_head")
    assert (row.role, row.rates.bytes_source) == ("lm_head", "shape")
    assert row.rates.moved_bytes == 2 * (8 * 64 + 64 * 999 + 8 * 999)
    assert notes == ("model small: 9 of 9 matrix products have a role in the 2 layers",)


def test_an_op_that_writes_as_much_as_the_keys_but_walks_over_no_tokens_copies_no_cache():
    """Keys of 2 requests, 4 heads, 64 tokens and 128 are 131,072 B, and so are 16 states of 4096."""
    query, cache = [2, 16, 1, 128], [2, 4, 64, 128]
    attention = {"Input Dims": [query, cache, cache], "Input type": [BF16] * 3}
    states = {"Input Dims": [[16, 4096]], "Input type": [BF16]}
    joined = {"Input Dims": [[[2, 4, 63, 128], [2, 4, 1, 128]], []], "Input type": ["TensorList", "Scalar"]}
    ops = (
        ("aten::relu", states, [("relu", 5)]),
        ("aten::cat", joined, [("CatArrayBatchedCopy<c10::BFloat16, 4>", 5)]),
        ("aten::_scaled_dot_product_flash_attention", attention, [("flash_fwd", 9)]),
    )
    work = sources_of(view_of(eager(*ops)), KernelOptions()).work
    assert [(work.of(op).family.value, work.of(op).write_bytes) for op in range(2)] == [
        ("pointwise", 131_072),
        ("cache", 131_072),
    ]


@pytest.mark.parametrize(
    ("texts", "matrices", "weights"),
    [
        (["up", "down"], 3, [2, 1]),
        (["up", "down"], 2, [1, 1]),  # no gate
        (["gate", "up", "down"], 3, [1, 1, 1]),
        (["moe_align_block_size", "up", "down"], 3, [0, 2, 1]),
        (["one"], 3, None),
    ],
)
def test_experts_weights_follow_the_order_of_their_products(texts, matrices, weights):
    assert _expert_weights(texts, matrices) == weights


def test_rows_by_shape_and_by_site():
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    for number, line in enumerate((10, 10, 20)):
        at = 100 * number
        made.python("torch/nn/modules/module.py(5): _call_impl", at=at, dur=80)
        made.python(f"model/layer.py({line}): forward", at=at + 1, dur=70)
        made.op("aten::mm", at=at + 2, dur=60, **MM)
        made.launch(at=at + 5).kernel("gemm", at=at + 20, dur=6, grid=[number, 1, 1])
    view = view_of(made)
    by_site, _, _ = report(view, group_by=GroupBy.SITE)
    assert [(row.site, row.launches) for row in by_site.kernels] == [
        ("layer.py(10): forward", 2),
        ("layer.py(20): forward", 1),
    ]
    assert len(report(view, group_by=GroupBy.SHAPE)[0].kernels) == 3
    assert len(report(view)[0].kernels) == 1


def test_rows_by_shape_say_what_tells_them_apart():
    """Four products of one kernel: two alike but for a scalar, one with other strides, one with other sizes."""
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    like = {**MM, "Input Strides": [[2048, 1], [3072, 1]], "Concrete Inputs": ["", ""]}
    other = {"Input Strides": [[2048, 1], [1, 2048]]}
    small = {"Input Dims": [[8, 2048], [2048, 3072]]}
    for number, details in enumerate(
        (like, {**like, "Concrete Inputs": ["", "1"]}, {**like, **other}, {**like, **small})
    ):
        made.op("aten::mm", at=100 * number, dur=60, **details)
        made.launch(at=100 * number + 5).kernel("gemm", at=100 * number + 20, dur=10 - number, grid=[132, 1, 1])
    rows = report(view_of(made), group_by=GroupBy.SHAPE)[0].kernels
    assert [(row.launches, like_text(row, "shape")) for row in rows] == [
        (2, "aten::mm bf16[16,2048]:[2048,1] bf16[2048,3072]:[3072,1]"),
        (1, "aten::mm bf16[16,2048]:[2048,1] bf16[2048,3072]:[1,2048]"),
        (1, "aten::mm bf16[8,2048] bf16[2048,3072]"),
    ]
    assert [like_text(row, "name") for row in rows] == ["", "", ""]


def test_without_a_known_device_rates_stay_and_shares_do_not():
    made = eager(("aten::mm", MM, [("gemm", 6)]))
    made.device_name = "Mystery 9000"
    device, _, _ = report(view_of(made))
    row = device.kernels[0]
    assert row.rates.achieved_gbps == pytest.approx(MM_BYTES / 6000)
    assert row.rates.peak_frac is None
    assert (row.bound, row.bound_rule) == (None, "no peak is known for its bytes and FLOP")
    assert "no peaks are known" in device.ceilings.missing
    by_hand, _, _ = report(view_of(made), peaks=PeakOptions(gbps=1000.0))
    assert by_hand.kernels[0].rates.peak_frac == pytest.approx(MM_BYTES / 6000 / 1000)


def test_no_flop_are_no_speed_of_light_where_no_peak_is_known():
    """A copy of an op without FLOP: zero FLOP take no time at any peak, which says nothing of what limits it."""
    made = eager(("aten::copy_", {"Input Dims": [[1000], [1000]], "Input type": [BF16, BF16]}, [("copy", 6)]))
    made.device_name = "Mystery 9000"
    (row,) = report(view_of(made))[0].kernels
    assert (row.rates.moved_bytes, row.rates.sol_frac) == (4000, None)
    assert (row.bound, row.bound_rule) == (None, "no peak is known for its bytes")


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        (Facts(9_000, 132, 132, None, None), "nothing is known of its bytes"),
        (Facts(9_000, 132, 132, None, None, no_peak=("bytes", "FLOP")), "no peak is known for its bytes and FLOP"),
        (Facts(9_000, 132, 132, 900, None, no_peak=("FLOP",)), "no peak is known for its FLOP"),
        (Facts(9_000, 132, 132, None, 900, no_peak=("bytes",)), "no peak is known for its bytes"),
    ],
)
def test_without_a_peak_nothing_is_said_of_what_limits_a_kernel(facts, rule):
    assert bound_of(facts) == (None, rule)


def test_one_peak_is_enough_where_it_explains_the_time():
    assert bound_of(Facts(9_000, 132, 132, 4_500, None, no_peak=("FLOP",)))[0] is Bound.MEMORY
    assert bound_of(Facts(9_000, 132, 132, None, 4_500, no_peak=("bytes",)))[0] is Bound.COMPUTE


@pytest.mark.parametrize(
    ("facts", "bound"),
    [
        (Facts(100_000, 132, 132, 80_000, 1_000), Bound.MEMORY),
        (Facts(100_000, 132, 132, 20_000, 70_000), Bound.COMPUTE),
        (Facts(100_000, 132, 132, 20_000, 1_000), Bound.LATENCY),
        (Facts(2_000, 132, 132, 100, None), Bound.LAUNCH),
        (Facts(2_000, 132, 132, None, None), Bound.LAUNCH),
        (Facts(100_000, 132, 132, None, None), None),
        (Facts(100_000, 32, 132, None, None), Bound.LATENCY),
    ],
)
def test_what_limits_a_kernel(facts, bound):
    assert bound_of(facts)[0] is bound


def test_a_full_or_a_fast_or_a_short_kernel_is_not_starved():
    assert underfilled(Facts(50_000, 64, 132, 10_000, None))
    assert underfilled(Facts(50_000, 98, 132, 10_000, None))
    assert not underfilled(Facts(50_000, 99, 132, 10_000, None))
    assert not underfilled(Facts(50_000, 128, 132, 10_000, None))
    assert not underfilled(Facts(50_000, 88, 132, 36_000, None))
    assert not underfilled(Facts(2_000, 64, 132, 10, None))
    assert not underfilled(Facts(50_000, 100, 132, None, None))


def test_filling_wins_the_empty_share_down_to_the_speed_of_light():
    assert Facts(50_000, 33, 132, None, None).gain_frac == 0.75
    assert Facts(50_000, 33, 132, 10_000, None).gain_frac == 0.75
    assert Facts(50_000, 33, 132, 25_000, None).gain_frac == 0.5
    assert Facts(50_000, 500, 132, 25_000, None).gain_frac == 0
    assert Facts(50_000, None, 132, None, None).gain_frac == 0


def mixed(*grids, name="gemm_kernel"):
    """Launches of one kernel: (blocks, µs)."""
    made = TraceBuilder(device="NVIDIA H100 80GB HBM3")
    for number, (blocks, dur) in enumerate(grids):
        at = 2000 * number
        made.launch(at=at).kernel(name, at=at + 10, dur=dur, grid=[blocks, 1, 1], block=[128, 1, 1])
    return view_of(made)


def rated(view):
    groups = kernel_groups(view, chosen_ops(view, None), GroupBy.NAME, *[enclosing_rows(view.trace, view.ops, 0)] * 2)
    peaks, ceilings = peaks_of(view, PeakOptions())
    work = sources_of(view, KernelOptions(), None).work
    return rate_kernels(view, attribute(view, groups), groups, work, peaks, ceilings)


def test_only_the_launches_that_are_underfilled_count():
    """132 blocks for 30 µs, 33 for 20 µs: the former are shown, three quarters of the latter are at stake."""
    device, (finding,) = rated(mixed((132, 10), (33, 20), (132, 10), (132, 10)))
    (row,) = device.kernels
    assert (row.grid, row.grids, row.flags) == ((132, 1, 1), 2, ("underfilled_grid",))
    assert (finding.count, finding.impact_ns) == (1, 15_000)
    assert finding.message == (
        "gemm_kernel launches 33 blocks on 132 multiprocessors in 1 of 4 launches, with 40% of the op time"
    )
    assert finding.hint == (
        "split-K or stream-K, or smaller tiles: 75% of the multiprocessors have nothing to do while it runs, and "
        "filling them alone wins at most that share of its time"
    )
    assert row.bound is None


def test_a_launch_that_fills_nearly_all_is_not_flagged_for_others():
    device, findings = rated(mixed((128, 20), (256, 10)))
    assert (device.kernels[0].grid, device.kernels[0].grids, findings) == ((128, 1, 1), 2, ())


def test_underfilled_launches_with_hardly_any_time_are_not_flagged():
    """1 % of the op time; 33 and 66 blocks together have 3 %, and are told together."""
    assert rated(mixed((132, 990), (33, 10)))[1] == ()
    (finding,) = rated(mixed((132, 970), (33, 15), (66, 15)))[1]
    assert "launches 33 to 66 blocks on 132 multiprocessors in 2 of 3 launches" in finding.message
    assert finding.impact_ns == 15_000 * 3 // 4 + 15_000 // 2


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "split-K or stream-K, or smaller tiles"),
        ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT", "more splits along K, or smaller tiles"),
        ("decode_attention_kernel", "split the cache over more blocks (split-KV)"),
        ("void flash_fwd_splitkv_kernel<int>(P)", "more splits of the cache, or smaller tiles"),
        ("vectorized_layer_norm_kernel", "spread its work over more blocks"),
    ],
)
def test_the_remedy_is_for_what_the_kernel_is(name, remedy):
    (finding,) = rated(mixed((33, 20), name=name))[1]
    assert finding.hint.startswith(f"{remedy}: 75% of")


def test_facts_are_left_as_they_are():
    trace = trace_of(eager(("aten::mm", MM, [("gemm", 6)])))
    before = [column.copy() for column in (trace.ops.start_ns, trace.host.detail)]
    report(views_of(trace)[0])
    assert all((old == new).all() for old, new in zip(before, (trace.ops.start_ns, trace.host.detail), strict=True))


def uses(row):
    return {part.use: (part.per_step_ns, part.launches_per_step) for part in row.parts}


ATTEND = {
    "Input Dims": [[8, 16, 1, 128], [8, 4, 1025, 128], [8, 4, 1025, 128]],
    "Input type": [BF16, BF16, BF16],
}
JOINED = {
    "Input Dims": [[[8, 4, 1024, 128], [8, 4, 1, 128]], []],
    "Input type": ["TensorList", "Scalar"],
    "Concrete Inputs": ["", "-2"],
}
ROTATED = {
    "Input Dims": [[[8, 4, 1, 64], [8, 4, 1, 64]], []],
    "Input type": ["TensorList", "Scalar"],
    "Concrete Inputs": ["", "-1"],
}
CAT = "CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 4, 64, 64>"


def test_launches_of_one_name_are_parted_by_use():
    """Two joins of the cache, 12 and 14 µs, and one of two halves of a head, 2 µs; attention reads what was joined."""
    view = view_of(
        eager(
            ("aten::cat", JOINED, [(CAT, 12)]),
            ("aten::cat", JOINED, [(CAT, 14)]),
            ("aten::cat", ROTATED, [(CAT, 2)]),
            ("aten::_scaled_dot_product_flash_attention", ATTEND, [("flash_fwd_kernel", 9)]),
        )
    )
    device, _, _ = report(view)
    joins, attention = device.kernels
    assert uses(joins) == {LaunchUse.COPY: (26_000, 2), LaunchUse.LIGHT: (2000, 1)}
    (copied,) = (part for part in joins.parts if part.use is LaunchUse.COPY)
    assert (len(copied.ops), copied.widens) == (2, False)
    assert copied.rates.moved_bytes == 2 * 2 * 8 * 4 * 1025 * 128 * 2
    assert uses(attention) == {LaunchUse.WORK: (9000, 1)}


def test_a_short_kernel_whose_bytes_take_a_share_of_its_time_works():
    """4096 x 1024 values read and written, 16.8 MB in 10 µs: 5 µs at 3,350 GB/s; of 16 x 1024, none of the time."""

    def doubled(rows):
        details = {"Input Dims": [[rows, 1024], []], "Input type": [BF16, "Scalar"]}
        return ("aten::mul", details, [("vectorized_elementwise_kernel", 10)])

    device, _, _ = report(view_of(eager(doubled(4096), doubled(16))))
    (row,) = device.kernels
    assert uses(row) == {LaunchUse.WORK: (10_000, 1), LaunchUse.LIGHT: (10_000, 1)}


@pytest.mark.parametrize(("blocks", "use"), [(64 * 132, LaunchUse.LIGHT), (64 * 132 + 1, LaunchUse.WORK)])
def test_more_blocks_than_any_device_holds_walk_through_data(blocks, use):
    """Of unknown bytes: 132 multiprocessors hold 32 blocks each at most, and twice as many are two rounds."""
    device, _, _ = report(view_of(launches(10, name="triton_poi_fused_add_0", grid=[blocks, 1, 1])))
    assert [part.use for part in device.kernels[0].parts] == [use]


def test_products_and_copies_between_host_and_device_work():
    made = launches(5, name="nvjet_gemm")
    made.launch(at=500).kernel("Memcpy HtoD", at=510, dur=4)
    device, _, _ = report(view_of(made))
    assert {part.use for row in device.kernels for part in row.parts} == {LaunchUse.WORK}


def test_a_router_anywhere_in_the_trace_tells_the_experts_of_a_grouped_product():
    router = {
        "Input Dims": [[8, 64], [], [], [], []],
        "Input type": ["float", *["Scalar"] * 4],
        "Concrete Inputs": ["", "8", "-1", "True", "True"],
    }
    grouped = {"Input Dims": [[64, 2048], [64, 2048, 1536], [64]], "Input type": [BF16, BF16, "int"]}
    product = ("aten::_grouped_mm", grouped, [("cutlass_grouped", 90)])
    device, _, _ = report(view_of(eager(("aten::topk", router, [("gatherTopK", 8)]), product)))
    assert device.kernels[0].rates.assumption.startswith("42.0 of 64 experts touched")
    device, _, _ = report(view_of(eager(product)))
    assert device.kernels[0].rates.assumption.startswith("40.6 of 64 groups have rows")

"""From the floor to the step: each term by hand, and the sum exact."""

from dataclasses import replace

import pytest
from builders import TraceBuilder
from hypothesis import given
from renderers import render
from stepped import stepped_traces

from traceaudit.analyses.distance import distance
from traceaudit.analyses.reconcile import reconcile
from traceaudit.analyses.roofline import roofline
from traceaudit.errors import InvariantError
from traceaudit.ingest import read
from traceaudit.model.deviceview import device_views
from traceaudit.model.hardware import Peaks
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.workload import Workload
from traceaudit.model.options import ReconcileOptions, Selection, StepOptions
from traceaudit.model.results import Wall
from traceaudit.model.results.distance import Distance, Part

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}


def floor_at(gbps):
    """The floor of a tiny model: bytes over the bandwidth; no compute peak."""
    model = architecture(CONFIG, name="tiny", where="tiny")
    return roofline(model, Workload((64, 64)), Peaks.of(None, gbps=gbps))


def distance_of(tmp_path, trace, floor, wall_ns=None):
    path = tmp_path / "trace.json"
    path.write_bytes(render(trace))
    (view,) = device_views(read(str(path)), StepOptions(), Selection())
    audit = reconcile(view, ReconcileOptions(), None if wall_ns is None else Wall(wall_ns, "given"))
    return distance(view, audit, floor)


def one_step():
    """One step of 100 us: matrix product 0-30, attention 20-50, norm 50-60, copy 60-65, then idle."""
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#1", at=0, dur=100)
    trace.launch(at=0, dur=1).kernel("nvjet_gemm", at=2, dur=30, stream=7)
    trace.launch(at=1, dur=1).kernel("flash_attention", at=22, dur=30, stream=8)
    trace.launch(at=2, dur=1).kernel("rms_norm_kernel", at=52, dur=10, stream=7)
    trace.launch("cudaMemcpyAsync", at=3, dur=1).memcpy(at=62, dur=5, stream=7)
    return trace


def by_name(found):
    return {part.name: (part.took_ns, part.floor_ns, part.time_ns) for part in found.parts}


def test_each_term_by_hand(tmp_path):
    """An instant in which a product and attention run belongs to the product: 30, 20 and 10 us."""
    floor = floor_at(100.0)
    found = distance_of(tmp_path, one_step(), floor)
    total = floor.floor.expected_ns
    cache = total * floor.kv_bytes // (floor.kv_bytes + floor.weight_bytes.expected)
    assert by_name(found) == {
        "weight_kernels": (30_000, total - cache, 30_000 - total + cache),
        "attention_kernels": (20_000, cache, 20_000 - cache),
        "other_kernels": (10_000, 0, 10_000),
        "exposed_comm": (0, 0, 0),
        "exposed_copy": (5_000, 0, 5_000),
        "idle": (35_000, 0, 35_000),
        "outside": (0, 0, 0),
    }
    assert found.measured_ns == 100_000
    assert not found.from_wall
    assert found.below_speed_of_light_ns == 65_000 - total


def test_a_longer_wall_is_outside_the_trace(tmp_path):
    found = distance_of(tmp_path, one_step(), floor_at(100.0), wall_ns=130_000)
    assert by_name(found)["outside"][0] == 30_000
    assert (found.from_wall, found.full_speed) == (True, False)


def test_a_shorter_wall_leaves_less_idle_time_and_nothing_outside(tmp_path):
    """The wall is 80 us, 65 of them busy."""
    found = distance_of(tmp_path, one_step(), floor_at(100.0), wall_ns=80_000)
    assert (by_name(found)["idle"][0], by_name(found)["outside"][0]) == (15_000, 0)
    assert found.full_speed


def test_a_wall_below_busy_is_of_another_run_and_stays_visible(tmp_path):
    """Nothing is clamped: what is too much stands as negative time outside."""
    found = distance_of(tmp_path, one_step(), floor_at(100.0), wall_ns=50_000)
    assert (by_name(found)["idle"][0], by_name(found)["outside"][0]) == (35_000, -50_000)


def test_a_class_without_kernels_leaves_its_floor_to_the_others(tmp_path):
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#1", at=0, dur=100)
    trace.launch(at=0, dur=1).kernel("my_own_kernel", at=2, dur=90)
    floor = floor_at(100.0)
    parts = by_name(distance_of(tmp_path, trace, floor))
    assert parts["weight_kernels"] == (0, 0, 0)
    assert parts["other_kernels"] == (90_000, floor.floor.expected_ns, 90_000 - floor.floor.expected_ns)


def test_no_step_no_distance(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(render(one_step()))
    (view,) = device_views(read(str(path)), StepOptions(), Selection())
    audit = reconcile(view, ReconcileOptions(), None)
    empty = replace(audit.ledger, steps=0)
    assert distance(view, replace(audit, ledger=empty), floor_at(100.0)) is None


def test_a_sum_that_is_off_is_refused():
    part = Part("idle", 5, 5, 0)
    with pytest.raises(InvariantError):
        Distance(1, 3, 9, from_wall=True, full_speed=False, parts=(part,))
    with pytest.raises(InvariantError):
        Part("idle", 5, 6, 0)


@given(stepped_traces())
def test_floor_and_parts_sum_to_the_step_whatever_the_trace(tmp_path_factory, trace):
    """The results check it themselves; the ledger's own terms must come out as well."""
    path = tmp_path_factory.mktemp("traces") / "trace.json"
    path.write_bytes(render(trace))
    for view in device_views(read(str(path)), StepOptions(), Selection()):
        audit = reconcile(view, ReconcileOptions(), None)
        found = distance(view, audit, floor_at(1000.0))
        if found is not None:
            kernels = sum(part.took_ns for part in found.parts if part.name.endswith("_kernels"))
            assert kernels == audit.ledger.accounts.compute
            assert found.measured_ns == audit.ledger.window_ns

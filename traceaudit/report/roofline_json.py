"""`roofline` as JSON, by the contract: bytes of one GPU and one step, integer nanoseconds, null for what is unknown."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from traceaudit.report.jsondoc import SCHEMA_VERSION, completeness_object, written
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.distance import Distance
    from traceaudit.model.results.roofline import Communication, ComponentBytes, Gap, Roofline

__all__ = ["roofline", "roofline_object"]

Object = dict[str, object]


def roofline(result: "Roofline", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a floor."""
    of_trace = result.distance is not None or bool(result.findings)
    return written(
        {
            "schema_version": SCHEMA_VERSION,
            "command": "roofline",
            "completeness": completeness_object(result.completeness) if of_trace else None,
            **roofline_object(result),
        }
    )


def roofline_object(result: "Roofline") -> Object:
    """Describe a floor."""
    setting, gap = result.setting, result.gap
    return {
        "model": {
            "name": setting.model,
            "family": setting.family,
            "layers": list(setting.description),
            "parameters": setting.parameters,
            "active_parameters": setting.active_parameters,
        },
        "gpu": setting.gpu,
        "workload": {
            "batch": setting.batch,
            "tokens_per_request": setting.tokens_per_request,
            "accept_length": setting.accept_length,
            "context": {"min": setting.context_min, "mean": setting.context_mean, "max": setting.context_max},
            "kv_dtype": setting.kv_dtype,
            "tp": setting.tp,
            "ep": setting.ep,
            "dp": setting.dp,
            "pp": setting.pp,
        },
        "per_gpu": {
            "weight_bytes": asdict(result.weight_bytes),
            "kv_bytes": result.kv_bytes,
            "flop": result.flop,
            "comm_bytes": result.communication.sent_bytes,
            "components": [_component(item) for item in result.components],
            "flop_by_dtype": dict(result.flop_by_dtype),
        },
        "experts": None if result.experts is None else asdict(result.experts),
        "floor_ns": {
            "minimum": result.floor.minimum_ns,
            "expected": result.floor.expected_ns,
            "maximum": result.floor.maximum_ns,
            "memory": result.floor.memory_ns,
            "compute": result.floor.compute_ns,
        },
        "bound": result.floor.bound,
        "peak_gbps": result.peak_gbps,
        "peak_source": result.peak_source,
        "peak_tflops": dict(result.peak_tflops),
        "communication": _communication(result.communication),
        "assumptions": list(result.assumptions),
        "measured_ns": None if gap is None else gap.measured.step_ns,
        "gap_factor": None if gap is None else gap.factor,
        "gap": None if gap is None else _gap(gap),
        "tokens_per_second_at_floor": result.tokens_per_second_at_floor,
        "distance": None if result.distance is None else _distance(result.distance),
    }


def _component(item: "ComponentBytes") -> Object:
    return {
        "name": item.name,
        "kind": "cache" if item.is_cache else "weights",
        "format": item.format,
        "sharing": item.sharing,
        **asdict(item.size),
    }


def _communication(communication: "Communication") -> Object:
    latency = communication.latency_ns
    return {
        "messages": [asdict(message) for message in communication.messages],
        "link": communication.link,
        "link_gbps": communication.link_gbps,
        "transfer_ns": communication.transfer_ns,
        "latency_ns": None if latency is None else {"low": latency[0], "high": latency[1]},
    }


def _distance(distance: "Distance") -> Object:
    return {
        "steps": distance.steps,
        "measured_ns": distance.measured_ns,
        "floor_ns": distance.floor_ns,
        "from_wall": distance.from_wall,
        "full_speed": distance.full_speed,
        "parts": [asdict(part) for part in distance.parts],
    }


def _gap(gap: "Gap") -> Object:
    return {
        "measured_source": gap.measured.source,
        "numerator": gap.numerator,
        "denominator": gap.denominator,
        "factor_of_minimum": gap.factor_of_minimum,
        "remark": gap.remark or None,
        "other_readings": [
            {"step_ns": reading.step_ns, "source": reading.source, "factor": factor} for reading, factor in gap.others
        ],
    }

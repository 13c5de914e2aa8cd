"""The floor of a decode step: bytes over bandwidth or FLOP over peak, whichever is longer, and how far off a step is.

``floor = max(bytes / bandwidth, sum over data types of FLOP / peak)``. It is a lower bound: each weight byte counts
once, activations, cache writes and padding not at all. Communication is kept apart, since it may overlap.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from traceaudit.model.hardware import Peaks
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.assumptions import floor_assumptions, napkin_assumptions
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.ffn import Experts, touched
from traceaudit.model.llm.quantisation import COMPUTE_FALLBACK
from traceaudit.model.llm.reading import StepReading, kv_dtype_of, read_step
from traceaudit.model.llm.traffic import communication
from traceaudit.model.llm.workload import Workload
from traceaudit.model.results.roofline import (
    ByteRange,
    ComponentBytes,
    ExpertUse,
    Floor,
    Gap,
    Reading,
    Roofline,
    Setting,
)
from traceaudit.units import NS_PER_S

__all__ = ["Measurement", "Napkin", "gap_of", "napkin", "roofline"]

FLOP_PER_NS_PER_TFLOPS = 1_000  # 1 TFLOP/s is 1000 FLOP a nanosecond


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured step and how it is to be read.

    Attributes
    ----------
    accept_length
        Tokens that a request gains in a step: 1 without speculation.
    readings
        Step times, the one to believe first; empty where nothing was measured.
    """

    accept_length: float = 1.0
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class Napkin:
    """A model of which only the number of weights that a token passes is known, and their size in bits."""

    params: float
    bits: float


def roofline(
    architecture: Architecture, workload: Workload, peaks: Peaks, measurement: Measurement = Measurement()
) -> Roofline:
    """Return the floor of a step of a model.

    Raises
    ------
    UsageError
        If so many ranks cannot share the model.
    """
    architecture.refuse(workload.parallelism.tp, workload.parallelism.ep, workload.parallelism.pp)
    reading = read_step(architecture, workload)
    kv_dtype = kv_dtype_of(architecture, workload)
    components = _components(reading, architecture, str(kv_dtype), workload.parallelism.tp)
    count = architecture.parameters()
    setting = _setting(
        workload,
        peaks,
        measurement,
        model=architecture.name,
        family=architecture.family,
        description=_description(architecture),
        parameters=count.total,
        active_parameters=count.active,
        kv_dtype=str(kv_dtype),
    )
    return _answer(
        setting,
        components,
        reading.flop,
        peaks,
        workload,
        measurement,
        experts=_expert_use(architecture, workload),
        architecture=architecture,
        assumptions=floor_assumptions(architecture, workload, peaks),
    )


def napkin(model: Napkin, workload: Workload, peaks: Peaks, measurement: Measurement = Measurement()) -> Roofline:
    """Return the floor by the napkin: parameters times bits, over ranks, without cache.

    It is what batch 1 reads of a model that stores every weight alike; for a mixture of experts with more than one
    token, and for unquantised or replicated parts, the true floor is higher.
    """
    ranks = workload.parallelism.tp * workload.parallelism.pp
    size = round(model.params * model.bits / 8 / ranks)
    part = ComponentBytes(
        str(Component.ALL_WEIGHTS), is_cache=False, format=f"{model.bits:g} bits", sharing="split", size=_same(size)
    )
    setting = _setting(
        workload,
        peaks,
        measurement,
        model=f"{model.params / 1e9:g} B parameters of {model.bits:g} bits",
        family=None,
        description=(),
        parameters=None,
        active_parameters=round(model.params),
        kv_dtype=None,
    )
    flop = {"bf16": 2 * model.params * workload.tokens / ranks}
    assumptions = napkin_assumptions(peaks, batch=workload.batch)
    return _answer(
        setting, (part,), flop, peaks, workload, measurement, experts=None, architecture=None, assumptions=assumptions
    )


def gap_of(floor: Floor, readings: tuple[Reading, ...], batch: int) -> Gap | None:
    """Return how many times longer the measured step is than its floor, with numerator and denominator named."""
    if not readings:
        return None
    first, *rest = readings
    return Gap(
        measured=first,
        factor=first.step_ns / floor.expected_ns,
        factor_of_minimum=first.step_ns / floor.minimum_ns,
        numerator=f"step of {first.step_ns / 1e6:,.2f} ms ({first.source})",
        denominator=f"expected floor of {floor.expected_ns / 1e6:,.3f} ms at batch {batch} ({floor.bound} bound)",
        others=tuple((reading, reading.step_ns / floor.expected_ns) for reading in rest),
    )


def _answer(
    setting: Setting,
    components: tuple[ComponentBytes, ...],
    flop: Mapping[str, float],
    peaks: Peaks,
    workload: Workload,
    measurement: Measurement,
    *,
    experts: ExpertUse | None,
    architecture: Architecture | None,
    assumptions: tuple[str, ...],
) -> Roofline:
    rates = {dtype: peaks.rate(COMPUTE_FALLBACK.get(dtype, (dtype,))) for dtype in flop if flop[dtype]}
    floor = _floor(components, flop, rates, peaks.mem_bw_gbs, workload.parallelism.pp)
    gained = workload.batch * workload.parallelism.dp * measurement.accept_length
    return Roofline(
        setting=setting,
        components=components,
        experts=experts,
        flop_by_dtype={dtype: round(flop[dtype]) for dtype in rates},
        peak_gbps=peaks.mem_bw_gbs,
        peak_source=peaks.mem_bw_source,
        peak_tflops=rates,
        floor=floor,
        communication=communication(architecture, workload, peaks),
        tokens_per_second_at_floor=gained * NS_PER_S / floor.expected_ns,
        gap=gap_of(floor, measurement.readings, workload.batch),
        assumptions=assumptions,
    )


def _floor(
    components: tuple[ComponentBytes, ...],
    flop: Mapping[str, float],
    rates: Mapping[str, float | None],
    gbps: float,
    stages: int,
) -> Floor:
    """Return the floor; a token passes the pipeline stages in turn, so their times add up."""
    known = all(rate is not None for rate in rates.values())
    compute = sum(flop[dtype] / (rate * FLOP_PER_NS_PER_TFLOPS) for dtype, rate in rates.items() if rate is not None)
    compute_ns = round(stages * compute)
    memory = {
        bound: round(stages * sum(getattr(part.size, bound) for part in components) / gbps)
        for bound in ("minimum", "expected", "maximum")
    }
    times = {bound: max(1, time, compute_ns) for bound, time in memory.items()}
    return Floor(
        minimum_ns=times["minimum"],
        expected_ns=times["expected"],
        maximum_ns=times["maximum"],
        memory_ns=memory["expected"],
        compute_ns=compute_ns if known else None,
        bound="compute" if compute_ns > memory["expected"] else "memory",
    )


def _components(reading: StepReading, architecture: Architecture, kv_dtype: str, tp: int) -> tuple[ComponentBytes, ...]:
    parts = []
    for component in Component:
        bounds = reading.size_bytes.get(component)
        if bounds is None:
            continue
        fixed = component is Component.LINEAR_STATE
        stored = kv_dtype if component.is_cache else architecture.formats.of(component).name
        if component is Component.INDEXER_CACHE:
            stored = "fp8"
        parts.append(
            ComponentBytes(
                str(component),
                is_cache=component.is_cache,
                format="fp32" if fixed else "mixed" if component is Component.DRAFT else stored,
                sharing=_sharing(component, reading, architecture, tp),
                size=ByteRange(*(round(value) for value in bounds)),
            )
        )
    return tuple(parts)


def _sharing(component: Component, reading: StepReading, architecture: Architecture, tp: int) -> str:
    if tp == 1:
        return "whole"
    copies = 1
    if component in {Component.KV_CACHE, Component.INDEXER_CACHE}:
        copies = max(layer.attention.cache_copies(tp) for layer, _ in architecture.kinds())
    elif component in reading.replicated or component is Component.EMBEDDING:
        copies = tp
    return "split" if copies == 1 else "replicated" if copies == tp else f"{copies} copies"


def _expert_use(architecture: Architecture, workload: Workload) -> ExpertUse | None:
    having = [(layer.ffn, count) for layer, count in architecture.kinds() if isinstance(layer.ffn, Experts)]
    if not having:
        return None
    ffn = having[0][0]
    tokens = workload.tokens * workload.parallelism.meeting_engines
    use = touched(ffn.count, ffn.per_token, tokens)
    layers = sum(count for _, count in having)
    return ExpertUse(layers, ffn.count, ffn.per_token, tokens, use.minimum, use.expected, use.maximum)


def _description(architecture: Architecture) -> tuple[str, ...]:
    lines = []
    for layer, count in architecture.kinds():
        net = layer.ffn
        if isinstance(net, Experts):
            shared = f" + shared {net.shared_width}" if net.shared_width else ""
            what = f"{net.per_token} of {net.count} experts of {net.width}{shared}"
        else:
            what = f"dense {net.width}"
        lines.append(f"{count} x {layer.attention.label}; {what}")
    return tuple(lines)


def _setting(
    workload: Workload,
    peaks: Peaks,
    measurement: Measurement,
    *,
    model: str,
    family: str | None,
    description: tuple[str, ...],
    parameters: int | None,
    active_parameters: int | None,
    kv_dtype: str | None,
) -> Setting:
    parallelism = workload.parallelism
    return Setting(
        model=model,
        family=family,
        description=description,
        parameters=parameters,
        active_parameters=active_parameters,
        gpu=peaks.name,
        batch=workload.batch,
        tokens_per_request=workload.tokens_per_request,
        accept_length=measurement.accept_length,
        context_min=min(workload.contexts),
        context_mean=sum(workload.contexts) / workload.batch,
        context_max=max(workload.contexts),
        kv_dtype=kv_dtype,
        tp=parallelism.tp,
        ep=parallelism.ep,
        dp=parallelism.dp,
        pp=parallelism.pp,
    )


def _same(size: int) -> ByteRange:
    return ByteRange(size, size, size)

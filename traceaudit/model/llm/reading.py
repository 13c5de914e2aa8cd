"""What one GPU reads and computes in a decode step: sums over layers, before any rate is known."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from traceaudit.model.llm.architecture import Architecture, Layer
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.ffn import Experts, Touched, touched
from traceaudit.model.llm.quantisation import Formats, KvDtype
from traceaudit.model.llm.workload import Parallelism, Workload

__all__ = ["StepReading", "kv_dtype_of", "read_step", "resident_bytes", "touched_on_rank"]


@dataclass(slots=True)
class StepReading:
    """Sums under construction: bytes by component with their three bounds, FLOP by data type."""

    size_bytes: defaultdict[Component, list[float]] = field(
        default_factory=lambda: defaultdict(lambda: [0.0, 0.0, 0.0])
    )
    flop: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    replicated: set[Component] = field(default_factory=set)

    def add(
        self, component: Component, minimum: float, expected: float | None = None, maximum: float | None = None
    ) -> None:
        """Add bytes to a component; one number stands for all three bounds."""
        bounds = self.size_bytes[component]
        for index, value in enumerate((minimum, expected, maximum)):
            bounds[index] += minimum if value is None else value

    def scaled(self, factor: float) -> None:
        """Multiply everything."""
        for bounds in self.size_bytes.values():
            bounds[:] = [value * factor for value in bounds]
        for dtype in self.flop:
            self.flop[dtype] *= factor


def read_step(architecture: Architecture, workload: Workload) -> StepReading:
    """Sum what one GPU reads and computes; with pipeline stages, the mean over stages."""
    reading = StepReading()
    for layer, count in architecture.kinds():
        _add_layer(reading, layer, count, architecture.formats, workload)
        _add_cache(reading, layer, count, architecture.formats, workload)
    _add_ends(reading, architecture, workload)
    _add_draft(reading, architecture, workload)
    reading.scaled(1 / workload.parallelism.pp)
    return reading


def kv_dtype_of(architecture: Architecture, workload: Workload) -> KvDtype:
    """Return how the cache is stored: as the user says, as the checkpoint says, else the attention's own default."""
    stated = workload.kv_dtype or architecture.formats.kv_dtype
    return stated or architecture.layers[0].attention.default_kv_dtype


def touched_on_rank(ffn: Experts, tokens: int, parallelism: Parallelism) -> Touched:
    """Return how many whole experts' weights one rank reads in a layer, in the mean over ranks.

    A rank holds ``E / ep`` experts, or a slice of each. `tokens` are those of one engine.
    """
    meeting = tokens * parallelism.meeting_engines
    everywhere = touched(ffn.count, ffn.per_token, meeting)
    share = 1 / (parallelism.ep * parallelism.expert_slices)
    most = min(ffn.count / parallelism.ep, ffn.per_token * meeting) / parallelism.expert_slices
    return Touched(everywhere.minimum * share, everywhere.expected * share, most)


def resident_bytes(architecture: Architecture, parallelism: Parallelism) -> float:
    """Return the bytes of weights that one GPU must hold, embedding included; the mean over pipeline stages."""
    formats, tp = architecture.formats, parallelism.tp
    total = 0.0
    for layer, count in architecture.kinds():
        parts = sum(part.per_rank * formats.of(part.component).bytes_per_weight for part in layer.weights(tp))
        if isinstance(layer.ffn, Experts):
            held = layer.ffn.count / (parallelism.ep * parallelism.expert_slices)
            parts += held * layer.ffn.expert_elements * formats.of(Component.ROUTED_EXPERTS).bytes_per_weight
        total += count * parts
    tables = architecture.head_elements / tp * formats.of(Component.LM_HEAD).bytes_per_weight
    return (total + tables * (1 if architecture.tied else 2)) / parallelism.pp


def _add_layer(reading: StepReading, layer: Layer, count: float, formats: Formats, workload: Workload) -> None:
    for part in layer.weights(workload.parallelism.tp):
        stored = formats.of(part.component)
        reading.add(part.component, count * part.per_rank * stored.bytes_per_weight)
        reading.flop[stored.compute] += 2 * workload.tokens * count * part.per_rank
        if part.per_rank == part.elements:
            reading.replicated.add(part.component)
    if isinstance(layer.ffn, Experts):
        _add_experts(reading, layer.ffn, count, formats, workload)


def _add_experts(reading: StepReading, ffn: Experts, count: float, formats: Formats, workload: Workload) -> None:
    stored, parallelism = formats.of(Component.ROUTED_EXPERTS), workload.parallelism
    size = count * ffn.expert_elements * stored.bytes_per_weight
    use = touched_on_rank(ffn, workload.tokens, parallelism).times(size)
    reading.add(Component.ROUTED_EXPERTS, use.minimum, use.expected, use.maximum)
    passes = workload.tokens * parallelism.meeting_engines * ffn.per_token
    reading.flop[stored.compute] += (
        2 * passes * count * ffn.expert_elements / (parallelism.ep * parallelism.expert_slices)
    )


def _add_cache(reading: StepReading, layer: Layer, count: int, formats: Formats, workload: Workload) -> None:
    dtype = workload.kv_dtype or formats.kv_dtype or layer.attention.default_kv_dtype
    tp = workload.parallelism.tp
    for context, requests in _counted(workload.contexts).items():
        for part in layer.attention.traffic(context, dtype, tp):
            reading.add(part.component, count * requests * part.size_bytes)
        queries = count * requests * workload.tokens_per_request
        reading.flop[dtype.compute] += queries * layer.attention.core_flop(context, tp)


def _add_ends(reading: StepReading, architecture: Architecture, workload: Workload) -> None:
    formats, tokens = architecture.formats, workload.tokens
    head = architecture.head_elements / workload.parallelism.tp
    stored = formats.of(Component.LM_HEAD)
    reading.add(Component.NORMS, architecture.hidden * formats.of(Component.NORMS).bytes_per_weight)
    reading.add(Component.EMBEDDING, tokens * architecture.hidden * formats.of(Component.EMBEDDING).bytes_per_weight)
    reading.add(Component.LM_HEAD, head * stored.bytes_per_weight)
    reading.flop[stored.compute] += 2 * tokens * head


def _add_draft(reading: StepReading, architecture: Architecture, workload: Workload) -> None:
    """Add the passes of the draft layer: one layer and the head each, for one token of every request."""
    if architecture.draft is None or not workload.draft_passes:
        return
    inner = StepReading()
    single = Workload(workload.contexts, parallelism=workload.parallelism, kv_dtype=workload.kv_dtype)
    _add_layer(inner, architecture.draft, 1, architecture.formats, single)
    stored = architecture.formats.of(Component.LM_HEAD)
    head = architecture.head_elements / workload.parallelism.tp
    inner.add(Component.LM_HEAD, head * stored.bytes_per_weight)
    inner.flop[stored.compute] += 2 * single.tokens * head
    bounds = [sum(values[index] for values in inner.size_bytes.values()) for index in range(3)]
    reading.add(Component.DRAFT, *(workload.draft_passes * value for value in bounds))
    for dtype, flop in inner.flop.items():
        reading.flop[dtype] += workload.draft_passes * flop


def _counted(contexts: tuple[int, ...]) -> Mapping[int, int]:
    counts: dict[int, int] = {}
    for context in contexts:
        counts[context] = counts.get(context, 0) + 1
    return counts

"""What a floor takes for granted, in sentences for the reader."""

from traceaudit.model.hardware import GIB, Peaks
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.ffn import Experts, touched
from traceaudit.model.llm.latent import Latent
from traceaudit.model.llm.quantisation import COMPUTE_FALLBACK
from traceaudit.model.llm.reading import kv_dtype_of, resident_bytes
from traceaudit.model.llm.workload import Workload

__all__ = ["floor_assumptions", "napkin_assumptions"]

ABOVE_TABLE = 1.01
USABLE = 0.95  # of a GPU's memory; the runtime, activations and some cache need the rest


def floor_assumptions(architecture: Architecture, workload: Workload, peaks: Peaks) -> tuple[str, ...]:
    """List what the floor of a model rests on."""
    return (
        "every weight byte is read once a step; activations, cache writes and page padding are not counted",
        *_requests(architecture, workload),
        *_experts(architecture, workload),
        *_sharing(architecture, workload),
        *architecture.notes,
        *architecture.formats.notes,
        *_drafts(architecture, workload),
        *_peaks(peaks),
        *_compute(architecture, peaks),
        *_memory(architecture, workload, peaks),
        "communication is not part of the floor: it may overlap",
    )


def napkin_assumptions(peaks: Peaks, *, batch: int) -> tuple[str, ...]:
    """List what the napkin floor rests on."""
    more = (f"right at batch 1 only, if there are experts: {batch} requests touch more weights than one",)
    return (
        "every weight has the same number of bits, is read once a step, and is split evenly over ranks",
        *(more if batch > 1 else ("a mixture of experts reads more as soon as more than one request runs",)),
        "cache, scales, and parts that stay unquantised or replicated are left out: --model names what they are",
        "FLOP are held against the bf16 peak",
        *_peaks(peaks),
    )


def _requests(architecture: Architecture, workload: Workload) -> list[str]:
    low, high = min(workload.contexts), max(workload.contexts)
    span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    stated = workload.kv_dtype or architecture.formats.kv_dtype
    dtype = kv_dtype_of(architecture, workload)
    who = (
        "as given"
        if workload.kv_dtype
        else "by the checkpoint"
        if stated
        else "taken as the default; --kv-dtype sets it"
    )
    lines = [
        f"{workload.batch} running in the step, with {span} tokens in the cache each",
        f"cache in {dtype}, {who}",
    ]
    if workload.parallelism.dp > 1:
        lines.append(f"the batch is that of one of {workload.parallelism.dp} engines; tokens/s counts all of them")
    if workload.parallelism.pp > 1:
        lines.append("bytes are the mean over pipeline stages, the head on the last; the floor adds the stages up")
    return lines


def _experts(architecture: Architecture, workload: Workload) -> list[str]:
    ffn = next((layer.ffn for layer in architecture.layers if isinstance(layer.ffn, Experts)), None)
    if ffn is None:
        return []
    tokens = workload.tokens * workload.parallelism.meeting_engines
    use = touched(ffn.count, ffn.per_token, tokens)
    lines = [
        f"one token touches {ffn.per_token} of {ffn.count} experts a layer"
        if tokens == 1
        else f"{use.minimum:g} to {use.maximum:g} of {ffn.count} experts a layer are touched by {tokens} tokens, "
        f"{use.expected:.1f} expected if tokens choose alike and independently; real routing is skewed and lies below"
    ]
    if workload.parallelism.ep > 1:
        lines.append("experts are the mean over expert-parallel ranks; the step waits for the rank with the most")
    return lines


def _sharing(architecture: Architecture, workload: Workload) -> list[str]:
    tp = workload.parallelism.tp
    attention = [layer.attention for layer, _ in architecture.kinds()]
    lines = []
    narrow = next((item for item in attention if isinstance(item, GroupedQuery) and item.kv_heads < tp), None)
    if narrow is not None:
        fold = tp // narrow.kv_heads
        lines.append(f"{narrow.kv_heads} KV heads on {tp} ranks: each rank holds a whole one, {fold}-fold in all")
    if any(isinstance(item, Latent) for item in attention):
        lines.append("latent attention in its absorbed form; every rank holds the whole latent cache")
        if architecture.formats.of(Component.ATTENTION).bytes_per_weight < architecture.formats.base.bytes_per_weight:
            lines.append("kv_b counted as stored; an engine that keeps it dequantised reads more")
    return lines


def _drafts(architecture: Architecture, workload: Workload) -> list[str]:
    if not workload.draft_passes:
        return []
    lines = [f"{workload.tokens_per_request} tokens of each request share one pass over weights and cache"]
    if architecture.draft is None:
        return [*lines, "the draft model is not counted: the configuration holds none"]
    return [*lines, f"{workload.draft_passes} passes of the draft layer and the head"]


def _peaks(peaks: Peaks) -> list[str]:
    lines = [f"memory bandwidth {peaks.mem_bw_gbs:,.0f} GB/s from {peaks.mem_bw_source}"]
    device = peaks.device
    if device is not None and peaks.mem_bw_gbs > ABOVE_TABLE * device.mem_bw_gbs:
        lines.append(f"that is above the {device.mem_bw_gbs:,.0f} GB/s known of {device.product}, from {device.source}")
    if peaks.uncertain:
        lines.append("that peak is uncertain, and with it every figure that divides by it")
    if not peaks.tflops:
        lines.append("no compute peak is known: whether compute bounds the step was not checked")
    return lines


def _compute(architecture: Architecture, peaks: Peaks) -> list[str]:
    """Say where a data type is held against another one's peak, because the device has none for it."""
    used = {architecture.formats.of(component).compute for component in Component}
    lines = []
    for dtype in sorted(used):
        chain = COMPUTE_FALLBACK.get(dtype, (dtype,))
        taken = next((item for item in chain if item in peaks.tflops), None)
        if taken is not None and taken != chain[0]:
            lines.append(f"{chain[0]} products are held against the {taken} peak: the device has none of its own")
    return lines


def _memory(architecture: Architecture, workload: Workload, peaks: Peaks) -> list[str]:
    if peaks.device is None:
        return []
    held, room = resident_bytes(architecture, workload.parallelism), max(peaks.device.memory_gb) * GIB
    if held <= USABLE * room:
        return []
    return [f"hypothetical: the weights take {held / 1e9:,.0f} GB of a GPU that has {room / 1e9:,.0f}"]

"""What the GPUs that share a model send each other in a step."""

from traceaudit.model.hardware import Peaks
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.ffn import Experts
from traceaudit.model.llm.workload import Workload
from traceaudit.model.results.roofline import Communication, Message
from traceaudit.units import NS_PER_US

__all__ = ["communication"]

ACTIVATION_BYTES = 2
DISPATCH_BYTES, COMBINE_BYTES = 1, 2  # tokens go out as fp8 and come back as bf16
LINK_LATENCY_US = (5, 10)  # of one small all-reduce, by rule of thumb: measure it on the trace
PCIE_LATENCY_US = (15, 40)


def communication(architecture: Architecture | None, workload: Workload, peaks: Peaks) -> Communication:
    """Return what one GPU sends in a step and the time that may take; nothing is known of a napkin model.

    A ring all-reduce of m bytes over n ranks sends ``2 (n - 1) / n m``, an all-gather ``(n - 1) / n m``.
    """
    messages = (
        () if architecture is None else (*_tensor_parallel(architecture, workload), *_experts(architecture, workload))
    )
    link, rate, latency = _link(peaks)
    sent = sum(message.sent_bytes for message in messages)
    calls = sum(message.calls for message in messages)
    stages = workload.parallelism.pp
    return Communication(
        messages=messages,
        link=link if messages else None,
        link_gbps=rate if messages else None,
        transfer_ns=None if rate is None or not messages else round(stages * sent / rate),
        latency_ns=None if latency is None or not messages else _span(stages * calls, latency),
    )


def _tensor_parallel(architecture: Architecture, workload: Workload) -> tuple[Message, ...]:
    ranks, stages = workload.parallelism.tp, workload.parallelism.pp
    if ranks == 1:
        return ()
    layers = len(architecture.layers)
    apart = _exchanging_layers(architecture, workload)  # their experts' outputs travel otherwise
    calls = 2 * layers - apart + 1  # attention, feed-forward, and the embedding
    size = workload.tokens * architecture.hidden * ACTIVATION_BYTES
    logits = workload.tokens * architecture.vocab * ACTIVATION_BYTES
    return (
        Message("all_reduce", round(calls / stages), round(calls * size * 2 * (ranks - 1) / ranks / stages)),
        Message("logits_all_gather", 1, round(logits * (ranks - 1) / ranks / stages)),
    )


def _experts(architecture: Architecture, workload: Workload) -> tuple[Message, ...]:
    """Tokens of data-parallel ranks travel to their experts and back; ranks of one engine hold all tokens anyway."""
    layers = _exchanging_layers(architecture, workload)
    if not layers:
        return ()
    per_token = next(layer.ffn.per_token for layer in architecture.layers if isinstance(layer.ffn, Experts))
    parallelism = workload.parallelism
    each = layers * workload.tokens * per_token * architecture.hidden / parallelism.tp / parallelism.pp
    calls = round(layers / parallelism.pp)
    return (
        Message("expert_dispatch", calls, round(each * DISPATCH_BYTES)),
        Message("expert_combine", calls, round(each * COMBINE_BYTES)),
    )


def _exchanging_layers(architecture: Architecture, workload: Workload) -> int:
    if workload.parallelism.meeting_engines == 1:
        return 0
    return sum(isinstance(layer.ffn, Experts) for layer in architecture.layers)


def _link(peaks: Peaks) -> tuple[str | None, float | None, tuple[int, int] | None]:
    device = peaks.device
    if device is None:
        return None, None, None
    if device.link_gbs_per_dir is not None:
        return device.link, device.link_gbs_per_dir, LINK_LATENCY_US
    if device.pcie_gbs_per_dir is not None:
        return "PCIe", device.pcie_gbs_per_dir, PCIE_LATENCY_US
    return None, None, None


def _span(calls: int, latency_us: tuple[int, int]) -> tuple[int, int]:
    low, high = latency_us
    return calls * low * NS_PER_US, calls * high * NS_PER_US

"""Words for a prediction."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traceaudit.report.format import DOUBT, duration, percent

if TYPE_CHECKING:
    from traceaudit.model.results import Completeness
    from traceaudit.model.results.whatif import DeviceWhatIf

__all__ = ["headline", "mark_of", "remarks"]

BOUND = {
    "device": "the device bounds the step then",
    "host": "the host bounds the step then",
    "both": "host and device both count then",
}


def mark_of(completeness: "Completeness", device: "DeviceWhatIf") -> str:
    """Return the mark of numbers that a finding makes doubtful, empty where none does."""
    return DOUBT if completeness.doubts(device.rank, device.device, "busy_ns") else ""


def headline(device: "DeviceWhatIf", mark: str = "") -> str:
    """Say what the step becomes."""
    saved = device.baseline_ns - device.predicted_ns
    times = device.baseline_ns / device.predicted_ns if device.predicted_ns > 0 else float("inf")
    return (
        f"{duration(device.baseline_ns)} a step becomes {duration(device.predicted_ns)}{mark} "
        f"(between {duration(device.low_ns)} and {duration(device.high_ns)}): "
        f"{duration(saved)}{mark} or {percent(saved, device.baseline_ns)}{mark} saved, {times:.2f}{mark} times as "
        f"fast; {BOUND[device.bound_by]}"
    )


def remarks(device: "DeviceWhatIf", mark: str = "") -> Iterator[str]:
    """Yield the naive bound and why it differs."""
    yield (
        f"Naive bound: {duration(device.naive_ns)}{mark}, the step minus the op time of the change "
        f"({duration(device.changed_op_time_ns)}); busy share f = {device.busy_share_frac:.3f}{mark} of the step, so "
        f"no kernel work saves more than {percent(min(device.busy_share_frac, 1), 1)}{mark}."
    )
    for text, count in device.matched.items():
        yield f"{text} matched {count:,} ops and host rows in {device.steps} steps."
    for reason in device.reasons:
        yield reason[0].upper() + reason[1:] + "."

"""Words for a prediction."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traceaudit.report.format import DOUBT, duration, percent

if TYPE_CHECKING:
    from traceaudit.model.results import Completeness
    from traceaudit.model.results.whatif import DeviceWhatIf

__all__ = ["GAINS", "headline", "mark_of", "remarks"]

BOUND = {
    "device": "the device bounds the step",
    "host": "the host bounds the step",
    "both": "host and device would each take it alone",
    "neither": "neither host nor device alone would take it: each waits for the other",
    "outside": "most of it is time outside the trace",
}
GAINS = "save: by a kernel of no time that is still launched; with launch: without its launches and their ops as well"
"""What the columns of the table of gains mean."""


def mark_of(completeness: "Completeness", device: "DeviceWhatIf") -> str:
    """Return the mark of numbers that a finding makes doubtful, empty where none does."""
    return DOUBT if completeness.doubts(device.rank, device.device, "busy_ns") else ""


def headline(device: "DeviceWhatIf", mark: str = "") -> str:
    """Say what the step becomes, or what it is where no change was asked for."""
    before, after = duration(device.baseline_ns), duration(device.predicted_ns)
    if not device.changes:
        return f"{before} a step without a change; {BOUND[device.bound_by]}"
    low, high = duration(device.low_ns), duration(device.high_ns)
    span = "" if low == high else f" (between {low} and {high})"
    if before == after:
        return f"{before} a step stays as it is{mark}{span}; {BOUND[device.bound_by]}"
    saved = device.baseline_ns - device.predicted_ns
    part = f"{duration(abs(saved))}{mark} or {percent(abs(saved), device.baseline_ns)}{mark}"
    times = device.baseline_ns / device.predicted_ns if device.predicted_ns > 0 else float("inf")
    gain = f"{part} saved, {times:.2f}{mark} times as fast" if saved > 0 else f"{part} more"
    return f"{before} a step becomes {after}{mark}{span}: {gain}; then {BOUND[device.bound_by]}"


def remarks(device: "DeviceWhatIf", mark: str = "") -> Iterator[str]:
    """Yield the naive bound and why it differs."""
    share = (
        f"usy share f = {device.busy_share_frac:.3f}{mark} of the step, so no kernel work saves more than "
        f"{percent(min(device.busy_share_frac, 1), 1)}{mark}."
    )
    if device.changes:
        yield (
            f"Naive bound: {duration(device.naive_ns)}{mark}, the step minus the op time of the change "
            f"({duration(device.changed_op_time_ns)}); b{share}"
        )
    else:
        yield f"B{share}"
    for text, count in device.matched.items():
        yield f"{text} matched {count:,} ops and host rows in {device.steps} steps."
    for reason in device.reasons:
        yield reason[0].upper() + reason[1:] + "."

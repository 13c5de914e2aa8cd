"""Words for a prediction."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traceaudit.report.format import duration, percent

if TYPE_CHECKING:
    from traceaudit.model.results.whatif import DeviceWhatIf

__all__ = ["headline", "remarks"]

BOUND = {
    "device": "the device bounds the step then",
    "host": "the host bounds the step then",
    "both": "host and device both count then",
}


def headline(device: "DeviceWhatIf") -> str:
    """Say what the step becomes."""
    saved = device.baseline_ns - device.predicted_ns
    times = device.baseline_ns / device.predicted_ns if device.predicted_ns > 0 else float("inf")
    return (
        f"{duration(device.baseline_ns)} a step becomes {duration(device.predicted_ns)} "
        f"(between {duration(device.low_ns)} and {duration(device.high_ns)}): "
        f"{duration(saved)} or {percent(saved, device.baseline_ns)} saved, {times:.2f} times as fast; "
        f"{BOUND[device.bound_by]}"
    )


def remarks(device: "DeviceWhatIf") -> Iterator[str]:
    """Yield the naive bound and why it differs."""
    yield (
        f"Naive bound: {duration(device.naive_ns)}, the step minus the op time of the change "
        f"({duration(device.changed_op_time_ns)}); busy share f = {device.busy_share_frac:.3f} of the step, so no "
        f"kernel work saves more than {percent(min(device.busy_share_frac, 1), 1)}."
    )
    for text, count in device.matched.items():
        yield f"{text} matched {count:,} ops and host rows in {device.steps} steps."
    for reason in device.reasons:
        yield reason[0].upper() + reason[1:] + "."

"""What a device's rates are held against."""

from traceaudit.errors import UnknownHardwareError
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.hardware import Device, Peaks, lookup
from traceaudit.model.kerneloptions import PeakOptions
from traceaudit.model.results.kernels import Ceilings

__all__ = ["peaks_of"]

MB = 10**6


def peaks_of(view: DeviceView, given: PeakOptions) -> tuple[Peaks | None, Ceilings]:
    """Return the peaks of a device: numbers given by hand, else a machine's own, else the table's."""
    device, missing = _device(view)
    if given.machine is not None:
        peaks = given.machine.peaks(device)
    elif device is None and given.gbps is None:
        return None, Ceilings(missing=missing)
    else:
        peaks = Peaks.of(device, gbps=given.gbps, tflops=given.tflops, name=view.name)
    return peaks, Ceilings(
        gbps=peaks.mem_bw_gbs,
        gbps_source=peaks.mem_bw_source,
        tflops_source=peaks.tflops_source,
        uncertain=peaks.uncertain,
        l2_bytes=_last_cache(device),
    )


def _device(view: DeviceView) -> tuple[Device | None, str]:
    info = view.info
    if view.name is None:
        return None, "the trace does not name the device; --peak-gbps N gives its bandwidth"
    capability = None
    if info is not None and info.compute_major is not None and info.compute_minor is not None:
        capability = f"{info.compute_major}.{info.compute_minor}"
    try:
        device = lookup(
            view.name,
            sms=info.sms if info else None,
            memory_bytes=info.memory_bytes if info else None,
            capability=capability,
        )
    except UnknownHardwareError as exc:
        return None, f"{exc.message}; {exc.hint}" if exc.hint else exc.message
    return device, ""


def _last_cache(device: Device | None) -> int | None:
    """Return the size of the last cache before memory."""
    sizes = [] if device is None else [size for size in (device.l2_mb, device.llc_mb) if size is not None]
    return round(max(sizes) * MB) if sizes else None

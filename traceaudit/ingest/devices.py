"""Devices that a trace lists or uses."""

from traceaudit.ingest.topkeys import ListedDevice, TopKeys
from traceaudit.model.schema import DeviceOps
from traceaudit.model.trace import DeviceInfo

__all__ = ["list_devices"]

_DIGITS = 9


def list_devices(keys: TopKeys, ops: DeviceOps, ranks: tuple[int, ...]) -> tuple[DeviceInfo, ...]:
    """Return the devices listed by the file, and those used without being listed.

    A device without properties takes the name that all listed devices share. In a file of several ranks, which may
    list devices with equal ids more than once, the devices used by each rank are returned.
    """
    listed: dict[int, ListedDevice] = {}
    for position, device in enumerate(keys.devices):
        listed.setdefault(_id(device, position), device)
    names = {device.name for device in keys.devices}
    shared = names.pop() if len(names) == 1 else None
    used = sorted(set(zip(ops.rank.tolist(), ops.device.tolist(), strict=True)))
    places = used if len(ranks) > 1 else sorted({*used, *((ranks[0], number) for number in listed)})
    return tuple(_info(rank, number, listed.get(number), shared) for rank, number in places)


def _id(device: ListedDevice, position: int) -> int:
    if isinstance(device.id, str):
        is_number = device.id.isascii() and device.id.isdigit() and len(device.id) <= _DIGITS
        return int(device.id) if is_number else position
    return position if device.id is None else device.id


def _info(rank: int, number: int, device: ListedDevice | None, shared: str | None) -> DeviceInfo:
    if device is None:
        return DeviceInfo(rank=rank, device=number, name=shared or None)
    return DeviceInfo(
        rank=rank,
        device=number,
        name=device.name or None,
        sms=device.num_sms if device.num_sms is not None else device.max_compute_units,
        memory_bytes=device.total_global_mem,
        compute_major=device.compute_major,
        compute_minor=device.compute_minor,
    )

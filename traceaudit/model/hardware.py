"""Peaks of the devices that traces name, each with its source and how far to trust it.

A device is found by its exact name, else by its normalised name, else by what the trace says of it (compute
capability, multiprocessors, memory). Never by part of a name: "NVIDIA H100" begins the names of three different cards.
A share of a card (a MIG slice, a partition) never gets the peak of the whole.
"""

import csv
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Self

from traceaudit.errors import UnknownHardwareError, UsageError

__all__ = ["Confidence", "Device", "Peaks", "devices", "lookup", "normalised"]

DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
GIB = 1 << 30
MEMORY_TOLERANCE = 0.085  # totalGlobalMem lies below the printed size: an A10G shows 22.06 of 24 GiB
WHOLE_MEMORY = 0.85  # less of it than this is a share of the card
WHOLE_SMS = 0.9  # allowed where the table itself is unsure of the count
PREFIXES = ("nvidia", "tesla", "amd", "intel")
OVERRIDE = "give the peak by hand: --peak-gbps N [--peak-tflops N]"


class Confidence(StrEnum):
    """How far to trust a row of the table."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Device:
    """Peaks of one device, as the runtime counts devices: half of an MI250X, one GPU of a GB200.

    Attributes
    ----------
    key
        Short unique name of the row.
    names
        Names that the runtime (and so the trace) gives the device.
    aliases
        Further names that mean this device and no other.
    capability
        Compute capability, ``major.minor``; None where the runtime has none.
    sms
        Multiprocessors, compute units or cores; None where unknown.
    memory_gb
        Sizes that are sold, in GiB as printed.
    mem_bw_gbs
        Peak memory bandwidth, reads and writes together, in GB/s (1 GB = 1e9 bytes).
    l2_mb, llc_mb
        L2 cache, and a last-level cache behind it, in MB.
    tflops
        Dense peak by data type, in TFLOP/s (for int8 TOP/s), with fp32 accumulation.
    link, link_gbs_per_dir, pcie_gbs_per_dir
        Links to other devices, and what they carry in one direction in GB/s.
    boost_mhz
        Highest clock that the maker states.
    confidence, uncertain
        How far to trust the row, and the fields to doubt.
    source, note
        Where the values come from, and what to know.
    matched_by
        How the row was found: ``name``, ``normalised name`` or ``properties``.
    """

    key: str
    vendor: str
    product: str
    names: tuple[str, ...]
    aliases: tuple[str, ...]
    arch: str
    capability: str | None
    sms: int | None
    memory_gb: tuple[float, ...]
    memory_type: str
    mem_bw_gbs: float
    l2_mb: float | None
    llc_mb: float | None
    tflops: Mapping[str, float]
    link: str | None
    link_gbs_per_dir: float | None
    pcie_gbs_per_dir: float | None
    boost_mhz: float | None
    confidence: Confidence
    uncertain: tuple[str, ...]
    source: str
    note: str | None
    matched_by: str = "name"

    def doubts(self, what: str) -> bool:
        """Return whether the value of field `what` (or of data type `what`) is uncertain."""
        named = what in self.uncertain or (what in DTYPES and "tflops" in self.uncertain)
        return named or self.confidence is Confidence.LOW


def lookup(
    name: str, *, sms: int | None = None, memory_bytes: int | None = None, capability: str | None = None
) -> Device:
    """Find the peaks of a device.

    Parameters
    ----------
    name
        Name that the trace or the user gives it.
    sms, memory_bytes, capability
        What the trace says of it (``numSms``, ``totalGlobalMem``, ``computeMajor.computeMinor``); used where the name
        is not enough, and to tell a share of the card from the whole.

    Raises
    ------
    UnknownHardwareError
        If no row or more than one fits, or if it is a share of a card. The message lists near names.

    Examples
    --------
    >>> lookup("NVIDIA H200").mem_bw_gbs
    4800.0
    >>> lookup("rtx pro 6000 blackwell server").mem_bw_gbs
    1597.0
    """
    if re.search(r"\bMIG\b", name):
        raise UnknownHardwareError(
            f"{name!r} is a MIG slice, which has a share of its card's peak",
            hint=f"{OVERRIDE}; a slice of n eighths of the memory has n eighths of the bandwidth",
        )
    by_name, by_normalised = _indices()
    found = by_name.get(name.strip())
    if found is None:
        found = by_normalised.get(normalised(name))
        found = None if found is None else replace(found, matched_by="normalised name")
    if found is None:
        return _by_properties(name, sms, memory_bytes, capability)
    _refuse_share(name, found, sms, memory_bytes)
    return found


@cache
def devices() -> tuple[Device, ...]:
    """Return every row of the table, in its order."""
    text = files("traceaudit.model").joinpath("data", "devices.csv").read_text("utf-8")
    return tuple(_device(row) for row in csv.DictReader(text.splitlines()))


def normalised(name: str) -> str:
    """Reduce a name to what tells devices apart: no maker, no marks, no case, no blanks.

    Examples
    --------
    >>> normalised("NVIDIA_H100_80GB_HBM3"), normalised("Intel(R) Arc(TM) B580 Graphics")
    ('h10080gbhbm3', 'arcb580graphics')
    """
    words = re.sub(r"\((?:r|tm)\)", " ", name.lower())
    parts = [part for part in re.split(r"[\s_\-]+", words) if part]
    while len(parts) > 1 and parts[0] in PREFIXES:
        parts = parts[1:]
    return "".join(parts)


def _device(row: Mapping[str, str]) -> Device:
    rates = {dtype: float(row[dtype]) for dtype in DTYPES if row[dtype]}
    return Device(
        key=row["key"],
        vendor=row["vendor"],
        product=row["product"],
        names=_several(row["names"]),
        aliases=_several(row["aliases"]),
        arch=row["arch"],
        capability=row["capability"] or None,
        sms=int(row["sms"]) if row["sms"] else None,
        memory_gb=tuple(float(size) for size in _several(row["memory_gb"])),
        memory_type=row["memory_type"],
        mem_bw_gbs=float(row["mem_bw_gbs"]),
        l2_mb=_number(row["l2_mb"]),
        llc_mb=_number(row["llc_mb"]),
        tflops=rates,
        link=row["link"] or None,
        link_gbs_per_dir=_number(row["link_gbs_per_dir"]),
        pcie_gbs_per_dir=_number(row["pcie_gbs_per_dir"]),
        boost_mhz=_number(row["boost_mhz"]),
        confidence=Confidence(row["confidence"]),
        uncertain=_several(row["uncertain"]),
        source=row["source"],
        note=row["note"] or None,
    )


def _several(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split("|") if part)


def _number(text: str) -> float | None:
    return float(text) if text else None


@cache
def _indices() -> tuple[dict[str, Device], dict[str, Device]]:
    """Return the rows by exact runtime name, and by every normalised name that means one of them."""
    exact = {name: device for device in devices() for name in device.names}
    loose = {normalised(name): device for device in devices() for name in _all_names(device)}
    return exact, loose


def _all_names(device: Device) -> tuple[str, ...]:
    return (device.key, device.product, *device.aliases, *device.names)


def _refuse_share(name: str, device: Device, sms: int | None, memory_bytes: int | None) -> None:
    if sms is not None and device.sms is not None and sms != device.sms:
        unsure = device.doubts("sms") and WHOLE_SMS * device.sms <= sms <= device.sms / WHOLE_SMS
        if not unsure:
            raise UnknownHardwareError(
                f"{name!r} shows {sms} multiprocessors, the whole card has {device.sms}: a share, or another card",
                hint=OVERRIDE,
            )
    if memory_bytes is not None and memory_bytes < WHOLE_MEMORY * min(device.memory_gb) * GIB:
        raise UnknownHardwareError(
            f"{name!r} shows {memory_bytes / GIB:.0f} GiB of the card's {min(device.memory_gb):.0f}: a share of it",
            hint=OVERRIDE,
        )


def _by_properties(name: str, sms: int | None, memory_bytes: int | None, capability: str | None) -> Device:
    candidates = (
        [device for device in devices() if _fits(device, sms, memory_bytes, capability)]
        if sms is not None and memory_bytes is not None and capability is not None
        else []
    )
    if not candidates:
        raise _unknown(name)
    if len({device.mem_bw_gbs for device in candidates}) > 1:
        listed = ", ".join(f"{device.product} ({device.mem_bw_gbs:.0f} GB/s)" for device in candidates)
        raise UnknownHardwareError(f"{name!r} may be any of {listed}", hint=OVERRIDE)
    return _common(candidates)


def _fits(device: Device, sms: int, memory_bytes: int, capability: str) -> bool:
    size = memory_bytes / GIB
    near = any((1 - MEMORY_TOLERANCE) * gb <= size <= 1.02 * gb for gb in device.memory_gb)
    return near and device.sms == sms and device.capability == capability


def _common(candidates: list[Device]) -> Device:
    """Return what all candidates agree on; a peak on which they differ is left out."""
    first = candidates[0]
    rates = {
        dtype: rate
        for dtype, rate in first.tflops.items()
        if all(device.tflops.get(dtype) == rate for device in candidates)
    }
    same_link = len({(device.link, device.link_gbs_per_dir) for device in candidates}) == 1
    return replace(
        first,
        product=" or ".join(device.product for device in candidates),
        tflops=rates,
        link=first.link if same_link else None,
        link_gbs_per_dir=first.link_gbs_per_dir if same_link else None,
        confidence=Confidence.LOW,
        matched_by="properties",
    )


def _unknown(name: str) -> UnknownHardwareError:
    near = _near(name)
    hint = f"did you mean {' or '.join(repr(item) for item in near)}? Otherwise {OVERRIDE}" if near else OVERRIDE
    return UnknownHardwareError(f"no peaks are known for {name!r}", hint=hint)


def _near(name: str, limit: int = 5) -> list[str]:
    """List names close to the one given: those that share a model number first, then those spelt alike."""
    numbers = {word for word in _words(name) if any(char.isdigit() for char in word)}
    shared = [device for device in devices() if numbers & _words(" ".join(_all_names(device)))]
    loose = _indices()[1]
    alike = [loose[key] for key in difflib.get_close_matches(normalised(name), loose, n=limit, cutoff=0.6)]
    return list(dict.fromkeys(_shown(device) for device in _ranked(name, [*shared, *alike])))[:limit]


def _ranked(name: str, found: Iterable[Device]) -> list[Device]:
    words = _words(name)
    return sorted(found, key=lambda device: -len(words & _words(" ".join(_all_names(device)))))


def _shown(device: Device) -> str:
    return device.names[0] if device.names else device.product


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower())) - {*PREFIXES, "r", "tm"}


@dataclass(frozen=True, slots=True)
class Peaks:
    """What rates are held against: a device's row, or numbers given by hand.

    Attributes
    ----------
    name
        The device, None where nobody names it.
    device
        Its row, None where the table has none.
    mem_bw_gbs, mem_bw_source
        Memory bandwidth in GB/s, and who says so.
    tflops, tflops_source
        Dense peaks by data type in TFLOP/s, and who says so.
    uncertain
        Whether the bandwidth is in doubt.
    """

    name: str | None
    device: Device | None
    mem_bw_gbs: float
    mem_bw_source: str
    tflops: Mapping[str, float]
    tflops_source: str | None
    uncertain: bool

    @classmethod
    def of(
        cls,
        device: Device | None,
        *,
        gbps: float | None = None,
        tflops: float | None = None,
        name: str | None = None,
    ) -> Self:
        """Take the numbers given by hand before those of the table; `name` is that of a device without a row.

        Raises
        ------
        UsageError
            If there is neither a device nor a bandwidth.
        """
        if gbps is None and device is None:
            raise UsageError(
                "no device and no peak", hint="--gpu NAME names a device, --peak-gbps N gives its bandwidth"
            )
        rates: dict[str, float]
        rates_source: str | None
        table = f"{device.product}, {device.confidence} confidence: {device.source}" if device else ""
        if tflops is not None:
            rates, rates_source = dict.fromkeys(DTYPES, tflops), f"--peak-tflops {tflops:g}"
        else:
            rates, rates_source = (dict(device.tflops), table) if device else ({}, None)
        return cls(
            name=device.product if device else name,
            device=device,
            mem_bw_gbs=gbps if gbps is not None else device.mem_bw_gbs if device else 0.0,
            mem_bw_source=table if gbps is None else f"--peak-gbps {gbps:g}",
            tflops=rates,
            tflops_source=rates_source,
            uncertain=gbps is None and device is not None and device.doubts("mem_bw_gbs"),
        )

    def rate(self, dtypes: Iterable[str]) -> float | None:
        """Return the peak of the first of the data types that has one, in TFLOP/s."""
        return next((self.tflops[dtype] for dtype in dtypes if dtype in self.tflops), None)

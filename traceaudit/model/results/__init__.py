"""What analyses answer: frozen results that check their own conservation laws when they are built.

Each is imported when it is first asked for: building a dataclass takes longer than many a trace takes to read.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceaudit.model.results.completeness import Completeness
    from traceaudit.model.results.inspection import DeviceInventory, Inspection, LaunchCoverage
    from traceaudit.model.results.kernels import DeviceKernels, KernelReport, KernelRow
    from traceaudit.model.results.ledger import (
        Accounts,
        DeviceAudit,
        HostTimes,
        IdleLatency,
        IdlePosition,
        Ledger,
        Reconciliation,
        StepItem,
        StepKind,
        StepMean,
        Steps,
        StepSource,
        Totals,
        Wall,
    )
    from traceaudit.model.results.roofline import (
        ByteRange,
        Communication,
        ComponentBytes,
        ExpertUse,
        Floor,
        Gap,
        Message,
        Reading,
        Roofline,
        Setting,
    )

__all__ = [
    "Accounts",
    "ByteRange",
    "Communication",
    "Completeness",
    "ComponentBytes",
    "DeviceAudit",
    "DeviceInventory",
    "DeviceKernels",
    "ExpertUse",
    "Floor",
    "Gap",
    "HostTimes",
    "IdleLatency",
    "IdlePosition",
    "Inspection",
    "KernelReport",
    "KernelRow",
    "LaunchCoverage",
    "Ledger",
    "Message",
    "Reading",
    "Reconciliation",
    "Roofline",
    "Setting",
    "StepItem",
    "StepKind",
    "StepMean",
    "StepSource",
    "Steps",
    "Totals",
    "Wall",
]

_MODULES = {
    "Accounts": "ledger",
    "ByteRange": "roofline",
    "Communication": "roofline",
    "Completeness": "completeness",
    "ComponentBytes": "roofline",
    "DeviceAudit": "ledger",
    "DeviceInventory": "inspection",
    "DeviceKernels": "kernels",
    "ExpertUse": "roofline",
    "Floor": "roofline",
    "Gap": "roofline",
    "HostTimes": "ledger",
    "IdleLatency": "ledger",
    "IdlePosition": "ledger",
    "Inspection": "inspection",
    "KernelReport": "kernels",
    "KernelRow": "kernels",
    "LaunchCoverage": "inspection",
    "Ledger": "ledger",
    "Message": "roofline",
    "Reading": "roofline",
    "Reconciliation": "ledger",
    "Roofline": "roofline",
    "Setting": "roofline",
    "StepItem": "ledger",
    "StepKind": "ledger",
    "StepMean": "ledger",
    "StepSource": "ledger",
    "Steps": "ledger",
    "Totals": "ledger",
    "Wall": "ledger",
}


def __getattr__(name: str) -> object:
    """Import a result's module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List what can be imported, imported yet or not."""
    return __all__

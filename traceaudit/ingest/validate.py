"""Checks of the tables."""
from dataclasses import dataclass
from typing import Any
from traceaudit.model.schema import DeviceOps

@dataclass(frozen=True, slots=True)
class Checked:
    ops: DeviceOps
    findings: tuple[Any, ...]

def check_tables(tables: Any, collected: Any) -> Checked:
    return Checked(tables.ops, ())

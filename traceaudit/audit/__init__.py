"""The composer: from a path and options to a result, through ingest, model and analyses.

Each command's composition is a module of its own and is imported when it is first asked for, so that a command pays for
nothing but its own analyses.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceaudit.audit.contents import inspect
    from traceaudit.audit.floor import roofline
    from traceaudit.audit.kerneltimes import kernels
    from traceaudit.audit.ledger import reconcile
    from traceaudit.audit.page import onepage
    from traceaudit.audit.prediction import whatif
    from traceaudit.audit.reading import Progress
    from traceaudit.audit.served import serverlog
    from traceaudit.audit.tracedfloor import traced_floor
    from traceaudit.audit.waiting import gaps

__all__ = [
    "Progress",
    "gaps",
    "inspect",
    "kernels",
    "onepage",
    "reconcile",
    "roofline",
    "serverlog",
    "traced_floor",
    "whatif",
]

_MODULES = {
    "Progress": "reading",
    "gaps": "waiting",
    "inspect": "contents",
    "kernels": "kerneltimes",
    "onepage": "page",
    "reconcile": "ledger",
    "roofline": "floor",
    "serverlog": "served",
    "traced_floor": "tracedfloor",
    "whatif": "prediction",
}


def __getattr__(name: str) -> object:
    """Import the composition of a command."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

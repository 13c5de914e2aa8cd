"""From a tiny trace as code to what the analyses take: the tables, a device's view, its ledger."""

import tempfile
from pathlib import Path

from builders import TraceBuilder
from renderers import document, dump

from traceaudit.analyses.reconcile import reconcile
from traceaudit.ingest import read
from traceaudit.model.deviceview import device_views
from traceaudit.model.options import ReconcileOptions, Selection, StepOptions
from traceaudit.model.results import Wall

__all__ = ["audit_of", "read_text", "text_of", "trace_of", "view_of", "views_of", "wall_of"]


def text_of(builder: TraceBuilder, *, events=()) -> str:
    """Return the trace as a file's text, with further events (as they are in the file) behind its own."""
    made = document(builder, "kineto-2.6")
    made.events = [*made.events, *events]
    return dump(made)


def trace_of(builder: TraceBuilder, *, events=()):
    """Return the tables that reading the trace gives."""
    return read_text(text_of(builder, events=events))


def read_text(text: str):
    """Return the tables that reading a file of this text gives."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(text, encoding="utf-8")
        return read(str(path))


def views_of(trace, *, steps=None, selection=None):
    """Return all devices of a trace (a builder is read first)."""
    if isinstance(trace, TraceBuilder):
        trace = trace_of(trace)
    return list(device_views(trace, steps or StepOptions(), selection or Selection()))


def view_of(trace, *, steps=None):
    """Return the one device of a trace."""
    (view,) = views_of(trace, steps=steps)
    return view


def wall_of(step_us, source="--wall-ms"):
    return Wall(round(step_us * 1000), source)


def audit_of(trace, *, wall_us=None, steps=None, step=None, scheduler=None):
    """Return the ledger of the one device of a trace, a builder or a view."""
    options = ReconcileOptions(steps=steps or StepOptions(), selection=Selection(step=step), scheduler=scheduler)
    view = trace if hasattr(trace, "occupancy") else view_of(trace, steps=steps)
    return reconcile(view, options, None if wall_us is None else wall_of(wall_us))

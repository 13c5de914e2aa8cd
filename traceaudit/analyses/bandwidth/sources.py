"""What each op of a device moves, by the best source that speaks of it."""

from dataclasses import dataclass

import numpy as np

from traceaudit.model.bytes.borrowed import Borrowed, OtherRun, borrow
from traceaudit.model.bytes.fromtrace import TraceSources
from traceaudit.model.bytes.roles import RoleMatch, assign_roles
from traceaudit.model.bytes.shares import OpWork, OpWorkBuilder
from traceaudit.model.bytes.work import Family, Source, Work
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.enclosing import Enclosing, enclosing_rows
from traceaudit.model.kerneloptions import KernelOptions
from traceaudit.model.llm.attention import GroupedQuery
from traceaudit.model.llm.latent import Latent
from traceaudit.model.schema import HostCategory

__all__ = ["Sourced", "other_run", "sources_of"]


@dataclass(frozen=True, slots=True)
class Sourced:
    """What the ops of a device move, and what was found on the way.

    Attributes
    ----------
    work
        Shares by op.
    around
        Framework ops around launches.
    notes
        How much another trace or the model explained.
    misfit
        Why the model cannot be that of the trace; empty where it can.
    """

    work: OpWork
    around: Enclosing
    notes: tuple[str, ...]
    misfit: str = ""


def sources_of(view: DeviceView, options: KernelOptions, other: OtherRun | None = None) -> Sourced:
    """Ask the sources in turn: records, annotations, the user's file, shapes, another run's shapes, the model."""
    around = enclosing_rows(view.trace, view.ops, HostCategory.CPU_OP)
    builder = OpWorkBuilder(len(view.ops))
    trace = TraceSources(view.trace, view.ops, around, options.run)
    trace.reported(builder)
    trace.by_ops(builder, annotated=True)
    trace.by_spec(builder, options.specs)
    trace.by_ops(builder, annotated=False)
    notes = list(trace.spec_notes)
    misfit = ""
    names, step = view.trace.names, view.windows.step
    if other is not None:
        notes.append(_borrowed(borrow(builder, names, view.ops, step, other), other.path))
    if options.model is not None and options.workload is not None:
        match = assign_roles(builder, names, view.ops, step, options.model, options.workload)
        notes.append(_matched(match, len(options.model.layers), options.model.name))
        attends = all(isinstance(layer.attention, GroupedQuery | Latent) for layer in options.model.layers)
        misfit = notes[-1] if attends and match.layers and not match.fits else ""
    work = builder.done()
    asked = options.run.batch is not None or options.run.context is not None
    if asked and options.model is None and not options.specs and not any(_of_attention(one) for one in work.works):
        notes.append("--batch and --context change nothing: no op of the trace asks for them; --model or --spec does")
    return Sourced(work, around, tuple(notes), misfit)


def _of_attention(work: Work) -> bool:
    return work.family is Family.ATTENTION and work.source is Source.SHAPE


def other_run(view: DeviceView, options: KernelOptions) -> OtherRun:
    """Take a device of another trace as the place to borrow from: what its own ops tell."""
    own = sources_of(view, KernelOptions(base=options.base, run=options.run))
    path = view.trace.source.path.rsplit("/", 1)[-1]
    return OtherRun(view.trace.names, view.ops, np.asarray(view.windows.step), own.work, path)


def _borrowed(found: Borrowed, path: str) -> str:
    share = 100 * found.matched_ns / found.time_ns if found.time_ns else 0.0
    by_name = f", {found.by_name_only} of them by name alone" if found.by_name_only else ""
    if found.other_grid:
        by_name += f"; {found.other_grid:,} have it with another grid, so another shape, and stay unknown"
    return (
        f"shapes from {path}: {found.matched:,} of {found.ops:,} kernels without bytes of their own have their like "
        f"there ({share:.1f}% of their time){by_name}"
    )


def _matched(match: RoleMatch, layers: int, name: str) -> str:
    if not match.fits:
        return (
            f"model {name}: a step shows {match.layers} attention kernels and the model has {layers} layers, so that "
            "no role fits and none of its bytes are used: is it the model of this trace?"
        )
    if match.layers != layers:
        return (
            f"model {name}: a step shows {match.layers} attention kernels for {layers} layers, so that no layer "
            "pattern was found"
        )
    ways = [
        text
        for text, used in (
            ("q, k and v apart", match.style.split_qkv),
            ("gate and up apart", match.style.split_gate_up),
            ("shared experts before the router", match.style.shared_first),
            ("latent projections absorbed", match.style.absorbed),
        )
        if used
    ]
    how = f" ({', '.join(ways)})" if ways else ""
    return (
        f"model {name}: {match.products - match.unplaced:,} of {match.products:,} matrix products have a role in the "
        f"{layers} layers{how}"
    )

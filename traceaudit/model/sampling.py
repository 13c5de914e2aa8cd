"""From a device of a trace to the summary of a run that comparisons use."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from traceaudit.errors import MissingDataError
from traceaudit.model import apis
from traceaudit.model.deviceview import DeviceView, own_ops
from traceaudit.model.findings import Verdict
from traceaudit.model.identity import identity_of, numbered_identity, placed, shape_class
from traceaudit.model.launchshape import LaunchShape
from traceaudit.model.results import Accounts, DeviceAudit, StepItem, StepKind, StepSource
from traceaudit.model.runs import GraphMode, KernelKey, KernelSamples, RunFacts, RunSummary
from traceaudit.model.schema import I64, DeviceOps, Kind, OpType

__all__ = ["summarise"]

MOSTLY = 0.9
"""Share of a step's ops that must come from graph launches (or from none) for the step to be called so."""

NAMED_DTYPE, NAMED_AT_ALL = 0.6, 0.2
"""Share of the compute time with a type in its name that must name one type, and share of all that must have one."""

_DTYPES = (
    ("fp4", re.compile(r"e2m1|nvf4|mxf4|fp4")),
    ("fp8", re.compile(r"e4m3|e5m2|fp8|[fF]loat8")),
    ("bf16", re.compile(r"bf16|[bB][fF]loat16")),
    (
        "fp16",
        re.compile(r"(?<!b)fp16|__half|c10::Half|\bhalf_t\b"),
    ),  # not f16: cuDNN's bf16 attention has it in its name
)


@dataclass(frozen=True, slots=True)
class _Picked:
    """Own ops of the steps used, as rows of the device's ops with their step and kernel."""

    rows: I64
    step: I64
    kernel: I64
    keys: tuple[KernelKey, ...]


def summarise(view: DeviceView, audit: DeviceAudit, *, verdict: Verdict, doubts: tuple[str, ...] = ()) -> RunSummary:
    """Summarise the steps of a device that are alike: those used, of the most common kind.

    Parameters
    ----------
    view, audit
        The device and its reconciliation.
    verdict, doubts
        Whether the trace can be believed, and the codes of the findings that say so.

    Raises
    ------
    MissingDataError
        If no step is usable or the steps have no ops.
    """
    items = _alike([item for item in audit.steps.items if item.used])
    divisor = audit.ledger.steps if audit.steps.source is StepSource.WHOLE_TRACE else 1
    picked = _pick(view, items)
    if not len(picked.rows):
        raise MissingDataError(
            "no step with device ops to compare",
            where=view.trace.source.path,
            hint="traceaudit reconcile shows the steps; --step-annotation or --steps says where they are",
        )
    kernels = _kernels(view, picked, len(items), divisor)
    wall = view.trace.wall
    return RunSummary(
        source=view.trace.source.path,
        rank=view.rank,
        device=view.device,
        facts=_facts(view, items, picked, kernels),
        step_source=str(audit.steps.source),
        window_ns=tuple(item.window_ns / divisor for item in items),
        busy_ns=tuple(item.accounts.busy / divisor for item in items),
        accounts={
            part.name: tuple(getattr(item.accounts, part.name) / divisor for item in items) for part in fields(Accounts)
        },
        wall_ns=wall.wall_ns_per_step if wall is not None else (),
        resolution_ns=view.trace.source.time_resolution_ns,
        kernels=kernels,
        sequence=_sequence(picked, items),
        verdict=verdict,
        doubts=doubts,
    )


def _alike(items: Sequence[StepItem]) -> list[StepItem]:
    """Keep the steps of the most common kind; decode before others where there are as many."""
    counts = Counter(item.kind for item in items)
    if not counts:
        return []
    kind = max(counts, key=lambda kind: (counts[kind], kind is StepKind.DECODE, str(kind)))
    return [item for item in items if item.kind is kind]


def _pick(view: DeviceView, items: Sequence[StepItem]) -> _Picked:
    steps = list(own_ops(view))
    chosen = [steps[item.index] for item in items]
    rows = np.concatenate([*chosen, np.empty(0, np.int64)]).astype(np.int64)
    step = np.repeat(np.arange(len(items)), [len(own) for own in chosen])
    keys, kernel = _keys(view, rows, step)
    return _Picked(rows, step, kernel, keys)


def _keys(view: DeviceView, rows: I64, step: I64) -> tuple[tuple[KernelKey, ...], I64]:
    """Tell the kernels apart by identity and shape class, and number them."""
    ops, identities = view.ops, _identities(view, rows, step)
    blocks = ops.grid_x[rows].astype(np.int64) * ops.grid_y[rows] * ops.grid_z[rows]
    size = np.where(ops.op_type[rows] == OpType.KERNEL, np.where(ops.grid_x[rows] > 0, blocks, -1), ops.copied[rows])
    pairs, inverse = np.unique(np.stack((ops.name[rows], size), axis=1), axis=0, return_inverse=True)
    numbers: dict[KernelKey, int] = {}
    codes = [
        numbers.setdefault((identities[name], shape_class(blocks)), len(numbers)) for name, blocks in pairs.tolist()
    ]
    return tuple(numbers), np.array(codes, np.int64)[inverse.reshape(-1)] if len(rows) else np.empty(0, np.int64)


def _identities(view: DeviceView, rows: I64, step: I64) -> dict[int, str]:
    """Return the identity of each name; kernels of one step that only a compiler's number tells apart get places."""
    codes, first = np.unique(view.ops.name[rows], return_index=True)
    by_first = [(code, _clean(view.trace.names[code])) for code in codes[np.argsort(first)].tolist()]
    whole = {code: identity_of(name) for code, name in by_first}
    apart = {code: numbered_identity(name) for code, name in by_first}
    seen: dict[tuple[int, str], set[str]] = {}
    for number, code in np.unique(np.stack((step, view.ops.name[rows]), axis=1), axis=0).tolist():
        seen.setdefault((number, whole[code]), set()).add(apart[code])
    several = {family for (_, family), members in seen.items() if len(members) > 1}
    places: dict[str, dict[str, int]] = {}
    for code, family in whole.items():
        members = places.setdefault(family, {})
        members.setdefault(apart[code], len(members) + 1)
    return {
        code: placed(family, places[family][apart[code]]) if family in several else family
        for code, family in whole.items()
    }


def _clean(text: str) -> str:
    """Return text that a file can hold: damaged traces leave halves of characters in names."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _kernels(view: DeviceView, picked: _Picked, steps: int, divisor: int) -> tuple[KernelSamples, ...]:
    duration = (view.ops.end_ns - view.ops.start_ns)[picked.rows]
    cell = picked.kernel * steps + picked.step
    shape = (len(picked.keys), steps)
    sums = np.bincount(cell, weights=duration, minlength=shape[0] * steps).reshape(shape) / divisor
    counts = np.bincount(cell, minlength=shape[0] * steps).reshape(shape) / divisor
    order = np.argsort(picked.kernel, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(picked.kernel[order])) + 1)
    return tuple(
        KernelSamples(
            key=key,
            name=_usual_name(view, picked.rows[group], duration[group]),
            kind=Kind(_usual(view.ops.kind[picked.rows[group]])).name.lower(),
            step_ns=tuple(sums[number].tolist()),
            step_launches=tuple(counts[number].tolist()),
            launch_sd_ns=_launch_sd(duration[group], picked.step[group]),
            shape=_usual_shape(view.ops, picked.rows[group]),
        )
        for number, (key, group) in enumerate(zip(picked.keys, groups, strict=True))
    )


def _usual_name(view: DeviceView, rows: I64, duration: I64) -> str:
    codes, inverse = np.unique(view.ops.name[rows], return_inverse=True)
    time: list[float] = np.bincount(inverse, weights=duration).tolist()
    names = [_clean(view.trace.names[code]) for code in codes.tolist()]
    name: str
    _, name = max(zip(time, names, strict=True))
    return name


def _usual(values: npt.NDArray[np.integer]) -> int:
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()])


def _launch_sd(duration: I64, step: I64) -> float | None:
    """Return the standard deviation of launches around the mean of their step, None where steps have one."""
    _, inverse, counts = np.unique(step, return_inverse=True, return_counts=True)
    degrees = len(duration) - len(counts)
    if not degrees:
        return None
    mean = np.bincount(inverse, weights=duration) / counts
    return float(np.sqrt(np.square(duration - mean[inverse]).sum() / degrees))


def _usual_shape(ops: DeviceOps, rows: I64) -> LaunchShape:
    columns = (
        *(ops.grid_x, ops.grid_y, ops.grid_z),
        *(ops.block_x, ops.block_y, ops.block_z),
        *(ops.registers, ops.shared_mem),
    )
    found, counts = np.unique(np.stack([column[rows] for column in columns], axis=1), axis=0, return_counts=True)
    best = [int(value) for value in found[counts.argmax()]]
    grid, block = (best[0], best[1], best[2]), (best[3], best[4], best[5])
    return LaunchShape(
        grid=grid if min(grid) >= 0 else None,
        block=block if min(block) >= 0 else None,
        registers=best[6] if best[6] >= 0 else None,
        shared_mem=best[7] if best[7] >= 0 else None,
    )


def _sequence(picked: _Picked, items: Sequence[StepItem]) -> tuple[int, ...]:
    """Return the kernels of the step whose number of ops is usual and whose op time is nearest to the median."""
    counts = Counter(item.device_ops for item in items)
    usual = max(counts, key=lambda ops: (counts[ops], ops))
    times = [item.op_time_ns for item in items if item.device_ops == usual]
    middle = sorted(times)[(len(times) - 1) // 2]
    step = next(i for i, item in enumerate(items) if item.device_ops == usual and item.op_time_ns == middle)
    return tuple(picked.kernel[picked.step == step].tolist())


def _facts(view: DeviceView, items: Sequence[StepItem], picked: _Picked, kernels: Sequence[KernelSamples]) -> RunFacts:
    wall, trace = view.trace.wall, view.trace
    info = next((info for info in trace.devices if (info.rank, info.device) == (view.rank, view.device)), None)
    batches = Counter(item.batch for item in items if item.batch is not None)
    labelled = max(batches, key=lambda batch: (batches[batch], batch)) if batches else None
    kind = items[0].kind
    return RunFacts(
        device=None if view.name is None else _clean(view.name),
        capability=(info.compute_major, info.compute_minor)
        if info is not None and info.compute_major is not None and info.compute_minor is not None
        else None,
        sms=info.sms if info is not None else None,
        dtype=_dtype(kernels),
        batch=labelled if labelled is not None else (wall.batch if wall is not None else None),
        context=wall.context if wall is not None else None,
        graph_mode=_graph_mode(view, picked.rows),
        step_kind=None if kind is StepKind.UNKNOWN else str(kind),
        versions={_clean(key): _clean(value) for key, value in trace.source.versions.items()},
    )


def _dtype(kernels: Sequence[KernelSamples]) -> str | None:
    """Return the data type that most of the compute time with a type in its name has."""
    time: dict[str, float] = {}
    compute = [kernel for kernel in kernels if kernel.kind == "compute"]
    for kernel in compute:
        found = next((dtype for dtype, pattern in _DTYPES if pattern.search(kernel.name)), None)
        if found is not None:
            time[found] = time.get(found, 0.0) + sum(kernel.step_ns)
    named = sum(time.values())
    if not time or named < NAMED_AT_ALL * sum(sum(kernel.step_ns) for kernel in compute):
        return None
    best = max(time, key=lambda dtype: (time[dtype], dtype))
    return best if time[best] >= NAMED_DTYPE * named else None


def _graph_mode(view: DeviceView, rows: I64) -> GraphMode | None:
    ops, host, names = view.ops, view.trace.host, view.trace.names
    launch = ops.launch[rows]
    by_graph, known = ops.graph[rows] > 0, launch >= 0
    if not (by_graph | known).any():
        return None
    graphs: Mapping[int, bool] = {
        code: apis.is_graph_launch(names[code]) for code in np.unique(host.name[launch[known]]).tolist()
    }
    by_graph[known] |= np.array([graphs[code] for code in host.name[launch[known]].tolist()], np.bool_)
    share = float(by_graph[by_graph | known].mean())
    if share >= MOSTLY:
        return "graph"
    return "eager" if share <= 1 - MOSTLY else "mixed"

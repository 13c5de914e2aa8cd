"""What a trace tells of the bytes of its device ops (records, annotations, op shapes), and what a user's file says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from traceaudit.model.bytes.attention import cache_sizes
from traceaudit.model.bytes.experts import ROUTER, choice_of
from traceaudit.model.bytes.facts import Choice, Facts
from traceaudit.model.bytes.operands import OpCall, op_call
from traceaudit.model.bytes.registry import has_model, work_of
from traceaudit.model.bytes.shares import OpWorkBuilder
from traceaudit.model.bytes.split import share_inputs
from traceaudit.model.bytes.work import Family, Source, Work
from traceaudit.model.enclosing import Enclosing
from traceaudit.model.kernelspec import KernelSpec, Scope
from traceaudit.model.schema import DeviceOps, Kind, OpType
from traceaudit.model.trace import Trace

__all__ = ["RunFacts", "TraceSources"]

_TO_DEVICE = re.compile(r"HtoD|HostToDevice|Host -> Device|HOST_TO_DEVICE")
_TO_HOST = re.compile(r"DtoH|DeviceToHost|Device -> (?:Pinned|Pageable|Host)|DEVICE_TO_HOST")
_WITHIN = re.compile(r"DtoD|DeviceToDevice|Device -> Device|DEVICE_TO_DEVICE|copyBuffer")
_HEAVY = frozenset({Family.GEMM, Family.ATTENTION, Family.EXPERTS})
NO_DETAIL = b"{}"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the user says of the run; None where nothing."""

    batch: int | None = None
    context: int | None = None
    tp: int | None = None
    config: Mapping[str, object] = field(default_factory=dict)


class TraceSources:
    """Finds what each device op moves, from the trace and the user's file."""

    def __init__(self, trace: Trace, ops: DeviceOps, around: Enclosing, run: RunFacts) -> None:
        self._trace = trace
        self._ops = ops
        self._around = around
        self._run = run
        self._times = (ops.end_ns - ops.start_ns).tolist()
        self._calls: dict[tuple[int, int], OpCall] = {}
        self._works: dict[tuple[int, int, int], Work | None] = {}
        self._owned: dict[int, int] | None = None
        self._cached: frozenset[tuple[int, int]] = frozenset()
        self._choices: frozenset[Choice] | None = None
        self.spec_notes: list[str] = []

    def reported(self, into: OpWorkBuilder) -> None:
        """Take the sizes that copy records state: both sides of a copy within the device, one of any other."""
        ops = self._ops
        for op in np.flatnonzero((ops.op_type != OpType.KERNEL) & (ops.copied >= 0)).tolist():
            size, name = int(ops.copied[op]), self._name(op)
            within = ops.kind[op] == Kind.MEMCPY and _WITHIN.search(name) is not None
            reads = within or _TO_HOST.search(name) is not None
            writes = within or not reads or _TO_DEVICE.search(name) is not None
            crossing = "" if within or ops.kind[op] == Kind.MEMSET else "crosses the link between host and device"
            work = Work(Family.COPY, Source.REPORTED, size if reads else 0, size if writes else 0, assumption=crossing)
            into.put_all([op], work)

    def by_ops(self, into: OpWorkBuilder, *, annotated: bool) -> None:
        """Take what the ops around the launches move: what compilers wrote of it, or what op shapes tell."""
        if self._owned is None:
            self._owned = self._owners()
            self._cached = frozenset(size for row in {*self._owned.values()} for size in cache_sizes(self._call(row)))
        groups = self._groups(self._owned, annotated=annotated)
        for row, members in groups.items():
            work = self._seen_as_cache(self._work(row, members), row)
            if work is None or (work.source is Source.ANNOTATED) is not annotated:
                continue
            if len(members) == 1:
                into.put_all(members, work)
            else:
                self._split(into, work, members)

    def by_spec(self, into: OpWorkBuilder, specs: Sequence[KernelSpec]) -> None:
        """Take what the user's file says of a kernel's launch; the first entry that matches decides."""
        chosen = {
            code: next((spec for spec in specs if spec.match.search(self._trace.names[code])), None)
            for code in np.unique(self._ops.name).tolist()
        }
        works: dict[tuple[object, ...], Work | None] = {}
        matched, unknown = {spec.where: 0 for spec in specs}, {spec.where: 0 for spec in specs}
        for spec in chosen.values():
            if spec is not None:
                matched[spec.where] += 1
        for op in np.flatnonzero(into.open()).tolist():
            spec = chosen[int(self._ops.name[op])]
            if spec is None:
                continue
            scope = self._scope(op)
            key = (id(spec), scope.grid, scope.block, id(scope.call))
            if key not in works:
                works[key] = _specified(spec, scope)
            work = works[key]
            if work is not None:
                into.put_all([op], work)
            else:
                unknown[spec.where] += 1
        for spec in specs:
            if not matched[spec.where]:
                self.spec_notes.append(f"{spec.where}: match {spec.match.pattern!r} decides for no kernel of the trace")
            elif unknown[spec.where]:
                self.spec_notes.append(
                    f"{spec.where}: {spec.bytes.text!r} asks for what is not known of {unknown[spec.where]:,} "
                    "launches, which keep their next source"
                )

    def call(self, op: int) -> OpCall | None:
        """Return the innermost framework op around a launch, with its operands."""
        row = int(self._around.innermost[op])
        return None if row < 0 else self._call(row)

    def _owners(self) -> dict[int, int]:
        """Return for each device op the nearest op around its launch that has a model (`HostRows` row)."""
        names = self._trace.names
        host = self._trace.host
        modelled: dict[int, bool] = {}
        owners: dict[int, int] = {}
        for op in np.flatnonzero(self._around.innermost >= 0).tolist():
            for row in self._around.chain(op):
                code = int(host.name[row])
                known = modelled.get(code)
                if known is None:
                    known = modelled[code] = has_model(names[code])
                if known:
                    owners[op] = row
                    break
        return self._without_double(owners)

    def _without_double(self, owners: dict[int, int]) -> dict[int, int]:
        """Leave out an op around others that already count what it counts: a linear layer around its product."""
        rows = set(owners.values())
        heavy = {row for row in rows if self._is_heavy(row)}
        around: set[int] = set()
        for row in heavy:
            outer = self._around.parent.get(row, -1)
            while outer != -1:
                around.add(outer)
                outer = self._around.parent.get(outer, -1)
        doubled = heavy & around
        return {op: row for op, row in owners.items() if row not in doubled}

    def _is_heavy(self, row: int) -> bool:
        work = self._work(row, ())
        return work is not None and work.family in _HEAVY

    def _groups(self, owners: dict[int, int], *, annotated: bool) -> dict[int, list[int]]:
        """Gather kernels by the op that they work for; copies speak for themselves."""
        groups: dict[int, list[int]] = {}
        kernel = np.equal(self._ops.op_type, OpType.KERNEL).tolist()
        for op, row in owners.items():
            if kernel[op] or annotated:
                groups.setdefault(row, []).append(op)
        return groups

    def _work(self, row: int, members: Sequence[int]) -> Work | None:
        longest = max(members, key=lambda op: self._times[op], default=None)
        kernel = -1 if longest is None else int(self._ops.name[longest])
        host = self._trace.host
        key = (int(host.name[row]), int(host.detail[row]), kernel)
        if key not in self._works:
            name = "" if kernel < 0 else self._trace.names[kernel]
            facts = Facts(self._run.batch, self._run.context, name, self._router_choices())
            self._works[key] = work_of(self._call(row), facts)
        return self._works[key]

    def _router_choices(self) -> frozenset[Choice]:
        """Return the choices of all routers' calls in the trace."""
        if self._choices is None:
            host, names = self._trace.host, self._trace.names
            codes = [code for code, name in enumerate(names) if name == ROUTER]
            rows = np.flatnonzero(np.isin(host.name, codes))
            found = (choice_of(self._call(row)) for row in rows[np.unique(host.detail[rows], return_index=True)[1]])
            self._choices = frozenset(choice for choice in found if choice is not None)
        return self._choices

    def _seen_as_cache(self, work: Work | None, row: int) -> Work | None:
        """Say of what writes all keys or values that attention reads that it moves the cache, no activations."""
        if work is None or not work.family.activations_only:
            return work
        tokens = {length for size, length in self._cached if size == work.write_bytes}
        # Activations may be as large by chance; the cache before the new token is shorter by one.
        if not tokens or tokens.isdisjoint(length + new for length in self._call(row).lengths() for new in (0, 1)):
            return work
        return replace(work, family=Family.CACHE)

    def _split(self, into: OpWorkBuilder, work: Work, members: list[int]) -> None:
        names = [self._name(op) for op in members]
        times = [self._times[op] for op in members]
        reads = share_inputs(work.read_bytes, names, times)
        flops = None if work.flop is None else share_inputs(work.flop, names, times)
        for place, op in enumerate(members):
            last = place == len(members) - 1
            into.put(op, work, reads[place], work.write_bytes if last else 0, None if flops is None else flops[place])

    def _call(self, row: int) -> OpCall:
        host = self._trace.host
        key = (int(host.name[row]), int(host.detail[row]))
        if key not in self._calls:
            detail = self._trace.details[key[1]] if key[1] >= 0 else NO_DETAIL
            self._calls[key] = op_call(self._trace.names[key[0]], detail)
        return self._calls[key]

    def _scope(self, op: int) -> Scope:
        ops, run = self._ops, self._run
        grid = (int(ops.grid_x[op]), int(ops.grid_y[op]), int(ops.grid_z[op]))
        block = (int(ops.block_x[op]), int(ops.block_y[op]), int(ops.block_z[op]))
        return Scope(
            grid=None if min(grid) < 0 else grid,
            block=None if min(block) < 0 else block,
            call=self.call(op),
            batch=run.batch,
            context=run.context,
            tp=run.tp,
            config=run.config,
        )

    def _name(self, op: int) -> str:
        return self._trace.names[int(self._ops.name[op])]


def _specified(spec: KernelSpec, scope: Scope) -> Work | None:
    moved = spec.bytes.evaluate(scope)
    if moved is None:
        return None
    flop = None if spec.flop is None else spec.flop.evaluate(scope)
    return Work(Family.OTHER, Source.SPEC, moved, flop=flop, assumption=spec.where)

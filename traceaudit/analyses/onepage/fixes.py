"""What could be fixed: each candidate with its evidence and with what it changes in the re-timed step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traceaudit.analyses.onepage.bound import Retime, without
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.options import Speedup
from traceaudit.model.results import Completeness, DeviceAudit
from traceaudit.model.results.kernels import KernelPart, LaunchUse
from traceaudit.model.results.onepage import FixKind, FloorSide, KernelLine, ServerSide
from traceaudit.model.results.whatif import DeviceWhatIf
from traceaudit.model.wording import brief

__all__ = ["Candidate", "Situation", "candidates_of", "kernel_evidence"]

NOTABLE_FRAC = 0.02
KERNEL_FRAC = 0.05
MOST_KERNELS = 5
MOST_NAMES = 3
IDLE = "idle"
BYTES_PER_MB = 10**6
FULL_BATCH_FRAC = 1.05


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that the choice of fixes looks at.

    Attributes
    ----------
    prediction
        The step as it is, with what removing each kernel would save; None where the trace cannot be re-timed.
    retime
        Gives the step after changes.
    tokens_per_second
        The rate now.
    other_run
        What shows that log and trace are not of one run; empty where nothing does.
    """

    completeness: Completeness
    audit: DeviceAudit
    kernels: tuple[KernelLine, ...]
    prediction: DeviceWhatIf | None
    retime: Retime
    server: ServerSide | None = None
    floor: FloorSide | None = None
    tokens_per_second: float | None = None
    other_run: tuple[str, ...] = ()

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the findings."""
        return frozenset(finding.code for finding in self.completeness.findings)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fix and what it changes.

    Attributes
    ----------
    speedups, graph_replay
        What the re-timing is told.
    unknown
        Kernels to shorten of which no bytes are known: only the floor says how far.
    off_ns
        Time off the step that the re-timing does not know; negative where the step grows.
    requests
        Requests in the batch after over before.
    is_bound
        Whether it can buy no more than that; a graph's own launch and gaps are an estimate.
    group
        Of fixes of one group, other than "", only one is taken: they remove the same time.
    """

    kind: FixKind
    what: str
    evidence: str
    names: tuple[str, ...] = ()
    speedups: tuple[Speedup, ...] = ()
    unknown: tuple[str, ...] = ()
    graph_replay: bool = False
    off_ns: float = 0.0
    requests: float = 1.0
    is_bound: bool = True
    group: str = ""


def candidates_of(situation: Situation) -> list[Candidate]:
    """Return everything that might be worth a fix."""
    return [*_host(situation), *_kernels(situation), *_batch(situation), *_beside(situation)]


def _host(situation: Situation) -> Iterator[Candidate]:
    """Replay from a graph, scheduling off the step's path, or whatever else keeps the device waiting."""
    step, host = situation.audit.step, situation.audit.host
    baseline = step.window_ns if step.wall_ns is None else step.wall_ns
    idle = step.idle_ns if step.full_speed_idle_ns is None else min(step.full_speed_idle_ns, step.idle_ns)
    if idle < NOTABLE_FRAC * baseline:
        return
    evidence = f"the device idles {brief(idle)} of {brief(baseline)}{_causes(situation)}"
    replay = Candidate(
        FixKind.HOST,
        "replay the step from a graph",
        evidence + _graph_lines(situation),
        graph_replay=True,
        is_bound=False,
        group=IDLE,
    )
    yield replay
    names = tuple(sorted(host.scheduler_names, key=lambda name: -host.scheduler_names[name]))
    if host.scheduler_exposed_ns >= NOTABLE_FRAC * situation.audit.ledger.window_ns:
        exposed = host.scheduler_exposed_ns / situation.audit.ledger.steps
        yield Candidate(
            FixKind.HOST,
            "take {names} off the step's path",
            f"{brief(exposed)} of it a step while the device idles, as profiled",
            names[:MOST_NAMES],
            speedups=(without(*names),),
        )
    elif situation.retime((), True) > baseline - idle / 2:  # noqa: FBT003  (Callable has no names)
        yield Candidate(FixKind.HOST, _remedy(situation), evidence, off_ns=idle, group=IDLE)


def _remedy(situation: Situation) -> str:
    """Say what would remove idle time that neither a graph nor the scheduler explains, by its largest part."""
    ledger = situation.audit.ledger
    if 2 * ledger.accounts.idle_graph > ledger.accounts.idle:
        return "close the gaps inside the graph"
    if 2 * ledger.host_cost_ns > ledger.accounts.idle:
        return "find what the host does between the launches"
    return "close the gaps between kernels"


def _causes(situation: Situation) -> str:
    """Name the largest causes of idle time with their shares of it, as profiled."""
    ledger = situation.audit.ledger
    causes = {
        **ledger.idle_host_by,
        "launch calls": ledger.idle_latency_by.launch_call,
        "delivery": ledger.idle_latency_by.delivery,
        "turnaround": ledger.idle_latency_by.turnaround,
        "between ops of a graph": ledger.accounts.idle_graph,
        "unknown": ledger.accounts.idle_unknown,
    }
    total = sum(causes.values())
    if not total:
        return ""
    largest = sorted(((time_ns, name) for name, time_ns in causes.items() if time_ns), reverse=True)[:MOST_NAMES]
    named = ", ".join(f"{name} {100 * time_ns / total:.0f} %" for time_ns, name in largest)
    return f" (as profiled: {named})"


def _graph_lines(situation: Situation) -> str:
    if situation.server is None:
        return ""
    engines = [engine for engine in situation.server.report.engines if engine.graph_false]
    off, samples = sum(engine.graph_false or 0 for engine in engines), sum(engine.samples for engine in engines)
    return "" if not off else f"; the log: no graph replay in {off} of {samples} samples"


def _kernels(situation: Situation) -> Iterator[Candidate]:
    """Yield the largest kernels one by one, the copies of the cache, and the light launches together."""
    parts = [(line, part) for line in situation.kernels for part in line.row.parts if part.per_step_ns > 0]
    copies = [(line, part) for line, part in parts if part.use is LaunchUse.COPY]
    widened = any(part.widens for _, part in copies)
    large = [(line, part) for line, part in parts if part.use is LaunchUse.WORK and line.share_of(part) >= KERNEL_FRAC]
    yield from (_shortened(line, part, widened=widened) for line, part in large[:MOST_KERNELS])
    for widens in (False, True):
        yield from _copied([(line, part) for line, part in copies if part.widens is widens], widens=widens)
    light = [(line, part) for line, part in parts if part.use is LaunchUse.LIGHT]
    if light:
        time_ns, launches, share = _sums(light)
        yield Candidate(
            FixKind.KERNEL,
            "fuse the small kernels into their neighbours",
            f"{_cost(time_ns, share)}, in {launches:.0f} launches of {brief(time_ns / launches)} that read neither "
            "weights nor cache",
            _names(light),
            speedups=(_removed(light),),
        )


def _shortened(line: KernelLine, part: KernelPart, *, widened: bool) -> Candidate:
    """Bring the working launches of a kernel to their speed of light, or shorten them if that is not known.

    Attention that reads a head for each query head could read less, so that its speed of light is no bound.
    """
    share = part.rates.sol_frac
    known = share is not None and 0 < share < 1
    speedups = (without(line.row.name, factor=1 / share, ops=part.ops),) if share is not None and known else ()
    return Candidate(
        FixKind.KERNEL,
        "bring {names} to its speed of light" if known else "shorten {names}",
        kernel_evidence(line, part),
        (line.row.name,),
        speedups=speedups,
        unknown=() if known else (line.row.name,),
        is_bound=not (known and widened and kernel_class(line.row.name) is KernelClass.ATTENTION),
    )


def _copied(copies: Sequence[tuple[KernelLine, KernelPart]], *, widens: bool) -> Iterator[Candidate]:
    """Yield the fix for launches that write all keys or values anew; they carry what attention then reads."""
    if not copies:
        return
    time_ns, launches, share = _sums(copies)
    moved = sum(part.rates.moved_bytes or 0 for _, part in copies)
    size = moved / max(sum(part.rates.covered_launches for _, part in copies), 1)
    evidence = (
        f"{_cost(time_ns, share)}: {launches:.0f} launches of {brief(time_ns / launches)} write all keys or values "
        f"that attention then reads, {size / BYTES_PER_MB:.3g} MB moved by each"
    )
    if widens:
        what = "let query heads share the heads of the KV cache (grouped-query attention)"
        evidence += "; attention then reads fewer bytes, too, which is not counted"
    else:
        what = "keep the KV cache in place (a static or paged cache)"
    speedups = (_removed(copies),)
    yield Candidate(FixKind.CACHE, what, evidence, _names(copies), speedups=speedups, is_bound=not widens)


def _sums(parts: Sequence[tuple[KernelLine, KernelPart]]) -> tuple[float, float, float]:
    """Return time in ns and launches a step, and the share of the op time."""
    return (
        sum(part.per_step_ns for _, part in parts),
        sum(part.launches_per_step for _, part in parts),
        sum(line.share_of(part) for line, part in parts),
    )


def _cost(time_ns: float, share: float) -> str:
    return f"{brief(time_ns)} a step, {100 * share:.0f} % of the op time"


def _names(parts: Sequence[tuple[KernelLine, KernelPart]]) -> tuple[str, ...]:
    return tuple(line.row.name for line, _ in parts)


def _removed(parts: Sequence[tuple[KernelLine, KernelPart]]) -> Speedup:
    return without(*_names(parts), ops=tuple(op for _, part in parts for op in part.ops))


def kernel_evidence(line: KernelLine, part: KernelPart) -> str:
    """Say what some launches of a kernel cost, how they fill the device, and how fast they move their bytes."""
    row, rates = line.row, part.rates
    parts = [_cost(part.per_step_ns, line.share_of(part))]
    whole = len(row.parts) == 1
    if whole and row.grid is not None and row.blocks_per_sm is not None and row.blocks_per_sm < 1:
        blocks = math.prod(row.grid)
        where = " in the launches that take most of it" if row.grids is not None and row.grids > 1 else ""
        parts.append(f"{blocks} blocks on {blocks / row.blocks_per_sm:.0f} multiprocessors{where}")
    if rates.achieved_gbps is not None and rates.peak_frac is not None:
        rate = f"{rates.achieved_gbps:,.4g} GB/s, {100 * rates.peak_frac:.2g} % of the peak"
        parts.append(f"{rate} (bytes by {rates.bytes_source})")
    return "; ".join(parts)


def _batch(situation: Situation) -> Iterator[Candidate]:
    server = situation.server
    if server is None or server.asked is None or not server.report.steady_batch:
        return
    requests = server.asked / server.report.steady_batch
    if requests < FULL_BATCH_FRAC:
        return
    busiest = max(server.report.engines, key=lambda engine: engine.steady_batch)
    hint = next((found.hint for found in server.report.findings if found.code == "batch_mismatch"), None)
    more_ns = 0.0
    if situation.floor is not None and situation.floor.asked is not None:
        more_ns = situation.floor.asked.floor.expected_ns - situation.floor.roofline.floor.expected_ns
    yield Candidate(
        FixKind.BATCH,
        f"let {server.asked} requests run at once",
        busiest.cause.reason + (f"; {hint}" if hint else ""),
        off_ns=-max(more_ns, 0.0),
        requests=requests,
    )


def _beside(situation: Situation) -> Iterator[Candidate]:
    """Yield what the re-timing leaves alone: time outside the trace, communication and copies that nothing hides."""
    step, ledger = situation.audit.step, situation.audit.ledger
    if not ledger.steps:
        return
    if step.residual_ns is not None and step.wall_ns and step.residual_ns >= NOTABLE_FRAC * step.wall_ns:
        evidence = f"{brief(step.residual_ns)} a step are in no row of the trace: between steps, or another run"
        yield Candidate(FixKind.OUTSIDE, "look between the steps", evidence, off_ns=step.residual_ns)
    for kind, what, total_ns in (
        (FixKind.COMM, "hide communication behind compute", ledger.accounts.exposed_comm),
        (FixKind.COPY, "hide copies behind compute", ledger.accounts.exposed_copy),
    ):
        if total_ns >= NOTABLE_FRAC * ledger.window_ns:
            time_ns = total_ns / ledger.steps
            spins = kind is FixKind.COMM and "spinning_collective" in situation.codes
            evidence = f"{brief(time_ns)} a step with no compute beside" + (
                "; a collective waits inside for other ranks" if spins else ""
            )
            yield Candidate(kind, what, evidence, off_ns=time_ns)

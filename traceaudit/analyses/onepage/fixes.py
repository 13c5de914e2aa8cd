"""What could be fixed: each candidate with its evidence and with what it changes in the re-timed step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traceaudit.analyses.onepage.bound import Retime, without
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.options import Speedup
from traceaudit.model.results import Completeness, DeviceAudit
from traceaudit.model.results.onepage import FixKind, FloorSide, KernelLine, ServerSide
from traceaudit.model.results.whatif import DeviceWhatIf
from traceaudit.model.wording import brief

__all__ = ["Candidate", "Situation", "candidates_of", "kernel_evidence", "light_kernels"]

NOTABLE_FRAC = 0.02
KERNEL_FRAC = 0.05
MOST_KERNELS = 5
MOST_NAMES = 3
IDLE = "idle"
SHORT_NS = 20_000
"""A kernel shorter than this mostly starts and ends."""

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
    """Yield the largest kernels one by one, and the short ones without weights or cache to read together."""
    small = light_kernels(situation.kernels)
    large = [line for line in situation.kernels if line not in small and line.share_of_busy_frac >= KERNEL_FRAC]
    for line in large[:MOST_KERNELS]:
        share = line.row.rates.sol_frac
        known = share is not None and 0 < share < 1
        speedups = (without(line.row.name, factor=1 / share),) if share is not None and known else ()
        yield Candidate(
            FixKind.KERNEL,
            "bring {names} to its speed of light" if known else "shorten {names}",
            kernel_evidence(line),
            (line.row.name,),
            speedups=speedups,
            unknown=() if known else (line.row.name,),
        )
    if small:
        time_ns, launches = sum(line.op_time_ns for line in small), sum(line.launches for line in small)
        share = sum(line.share_of_busy_frac for line in small)
        yield Candidate(
            FixKind.KERNEL,
            "fuse the small kernels into their neighbours",
            f"{brief(time_ns)} a step, {100 * share:.0f} % of the op time, in {launches:.0f} launches of "
            f"{brief(time_ns / launches)} that read neither weights nor cache",
            tuple(line.row.name for line in small),
            speedups=(without(*(line.row.name for line in small)),),
        )


def light_kernels(lines: Sequence[KernelLine]) -> list[KernelLine]:
    """Return the short kernels that read neither weights nor cache."""
    return [line for line in lines if _fusible(line)]


def _fusible(line: KernelLine) -> bool:
    """Tell whether a kernel is short and neither a matrix product nor attention: its time is overhead of the layers."""
    if line.row.kind != "compute" or line.row.mean_ns >= SHORT_NS or line.op_time_ns <= 0:
        return False
    return kernel_class(line.row.name) not in {KernelClass.GEMM, KernelClass.EXPERTS, KernelClass.ATTENTION}


def kernel_evidence(line: KernelLine) -> str:
    """Say what the kernel costs, how it fills the device, and how fast it moves its bytes."""
    row, rates = line.row, line.row.rates
    parts = [f"{brief(line.op_time_ns)} a step, {100 * line.share_of_busy_frac:.0f} % of the op time"]
    if row.grid is not None and row.blocks_per_sm is not None and row.blocks_per_sm < 1:
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

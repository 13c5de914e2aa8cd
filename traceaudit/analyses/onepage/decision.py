"""What to fix first, what that buys at most, and what comes next."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from traceaudit.analyses.onepage.fixes import Candidate, Situation, candidates_of
from traceaudit.analyses.onepage.limits import Limits, limits_of
from traceaudit.model.findings import CODES, Severity, Verdict
from traceaudit.model.options import Speedup
from traceaudit.model.results.onepage import Fix, FixKind

__all__ = ["decide"]

MOST = 4
WORTH_FRAC = 1.02
"""A fix that buys less than 2 % is not named."""


@dataclass(frozen=True, slots=True)
class _Done:
    """The fixes made so far: what the re-timing is told, what comes off beside it, and how many more requests run.

    `unknown` are the kernels to shorten of which no bytes are known.
    """

    speedups: tuple[Speedup, ...] = ()
    unknown: tuple[str, ...] = ()
    graph_replay: bool = False
    off_ns: float = 0.0
    requests: float = 1.0


def decide(situation: Situation) -> tuple[Fix, ...]:
    """Choose fixes one by one, each time the one that then buys most.

    A trace that cannot be believed, or a wall of another run, comes before all others: record again. What a fix buys is
    an upper bound, that of a graph an estimate: a kernel is taken to its speed of light where its bytes are known, and
    to what the floor leaves to it where they are not. No step is promised below the floor of its batch.
    """
    fixes = list(_record_again(situation))
    nothing_follows = situation.other_run or _below_floor(situation) or "wall_below_busy" in situation.codes
    if situation.prediction is None or nothing_follows:
        return tuple(fixes)
    left, done = _believable(situation, candidates_of(situation)), _Done()
    step_ns = situation.prediction.baseline_ns
    limits = limits_of(situation.floor, situation.kernels, step_ns)
    while left and len(fixes) < MOST:
        tried = [(_step(situation, limits, _with(done, one)), one) for one in left]
        after, best = max(tried, key=lambda pair: _factor(step_ns, pair[0].step_ns, pair[1]))
        factor = _factor(step_ns, after.step_ns, best)
        if factor < WORTH_FRAC:
            break
        done = _with(done, best)
        fixes.append(_fix(situation, done, best, factor, after))
        left = [one for one in left if one is not best and (not best.group or one.group != best.group)]
        step_ns = after.step_ns
    return tuple(fixes)


def _record_again(situation: Situation) -> Iterator[Fix]:
    if situation.completeness.verdict is Verdict.UNRELIABLE:
        worst = [
            finding
            for finding in situation.completeness.findings
            if finding.severity is Severity.ERROR and CODES[finding.code].about_trace
        ]
        evidence = ", ".join(dict.fromkeys(finding.code for finding in worst))
        hint = next((finding.hint for finding in worst if finding.hint), "the trace cannot be believed")
        yield Fix(FixKind.RECORD, "record again", (), f"{evidence}: {hint}", None, None, None)
    if situation.other_run:
        evidence = f"{'; '.join(situation.other_run)}: nothing follows from the two together"
        yield Fix(FixKind.RECORD, "take log and trace from the same run", (), evidence, None, None, None)
    if _below_floor(situation):
        evidence = (
            "the step is shorter than its floor: the floor is not that of this trace, and nothing follows from it"
        )
        yield Fix(FixKind.RECORD, "give model, batch, context and device of this trace", (), evidence, None, None, None)
    if "wall_below_busy" in situation.codes:
        evidence = "the wall is shorter than the device's busy time: it is of another run, and nothing follows from it"
        yield Fix(FixKind.RECORD, "measure trace and wall on the same run", (), evidence, None, None, None)


def _below_floor(situation: Situation) -> bool:
    """Tell whether the step is shorter than the hardware allows: the floor is of something else."""
    gap = None if situation.floor is None else situation.floor.roofline.gap
    return gap is not None and gap.factor_of_minimum < 1


def _believable(situation: Situation, candidates: list[Candidate]) -> list[Candidate]:
    """Leave out what rests on idle time, if that may be lost rows."""
    if situation.completeness.verdict is not Verdict.UNRELIABLE:
        return candidates
    return [one for one in candidates if one.kind not in (FixKind.HOST, FixKind.OUTSIDE)]


@dataclass(frozen=True, slots=True)
class _After:
    """The step after fixes, and whether the floor keeps it from being shorter."""

    step_ns: float
    bounded: bool


def _step(situation: Situation, limits: Limits, after: _Done) -> _After:
    """Return the step with these fixes; none is shorter than its floor."""
    speedups, held = limits.speedups(after.speedups, after.unknown)
    step_ns = situation.retime(speedups, after.graph_replay) - after.off_ns
    floor_ns = limits.floor_ns if after.requests == 1 else limits.asked_ns
    return _After(max(step_ns, floor_ns, 1.0), held or step_ns < floor_ns)


def _with(done: _Done, candidate: Candidate) -> _Done:
    return replace(
        done,
        speedups=done.speedups + candidate.speedups,
        unknown=done.unknown + candidate.unknown,
        graph_replay=done.graph_replay or candidate.graph_replay,
        off_ns=done.off_ns + candidate.off_ns,
        requests=done.requests * candidate.requests,
    )


def _factor(before_ns: float, after_ns: float, candidate: Candidate) -> float:
    return candidate.requests * before_ns / after_ns


def _fix(situation: Situation, done: _Done, candidate: Candidate, factor: float, after: _After) -> Fix:
    assert situation.prediction is not None  # noqa: S101  (the caller looked)
    rate = situation.tokens_per_second
    overall = done.requests * situation.prediction.baseline_ns / after.step_ns
    return Fix(
        kind=candidate.kind,
        what=candidate.what,
        names=candidate.names,
        evidence=candidate.evidence,
        step_ns=after.step_ns,
        factor=factor,
        tokens_per_second=None if rate is None else rate * overall,
        is_bound=candidate.is_bound,
        floor_binds=after.bounded,
    )

"""What to fix first, what that buys at most, and what comes next."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from traceaudit.analyses.onepage.fixes import Candidate, Situation, candidates_of
from traceaudit.model.findings import CODES, Severity, Verdict
from traceaudit.model.options import Speedup
from traceaudit.model.results.onepage import Fix, FixKind

__all__ = ["decide"]

MOST = 4
WORTH_FRAC = 1.02
"""A fix that buys less than 2 % is not named."""


@dataclass(frozen=True, slots=True)
class _Done:
    """The fixes made so far: what the re-timing is told, what comes off beside it, and how many more requests run."""

    speedups: tuple[Speedup, ...] = ()
    graph_replay: bool = False
    off_ns: float = 0.0
    requests: float = 1.0


def decide(situation: Situation) -> tuple[Fix, ...]:
    """Choose fixes one by one, each time the one that then buys most.

    A trace that cannot be believed, or a wall of another run, comes before all others: record again. What a fix buys is
    an upper bound, that of a graph an estimate: a kernel is taken to its speed of light where its bytes are known, and
    to nothing where they are not.
    """
    fixes = list(_record_again(situation))
    if situation.prediction is None or "wall_below_busy" in situation.codes:
        return tuple(fixes)
    left, done = _believable(situation, candidates_of(situation)), _Done()
    step_ns = situation.prediction.baseline_ns
    while left and len(fixes) < MOST:
        tried = [(_step(situation, done, one), one) for one in left]
        after_ns, best = max(tried, key=lambda pair: _factor(step_ns, pair[0], pair[1]))
        factor = _factor(step_ns, after_ns, best)
        if factor < WORTH_FRAC:
            break
        done = _with(done, best)
        fixes.append(_fix(situation, done, best, factor, after_ns))
        left = [one for one in left if one is not best and (not best.group or one.group != best.group)]
        step_ns = after_ns
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
    if "wall_below_busy" in situation.codes:
        evidence = "the wall is shorter than the device's busy time: it is of another run, and nothing follows from it"
        yield Fix(FixKind.RECORD, "measure trace and wall on the same run", (), evidence, None, None, None)


def _believable(situation: Situation, candidates: list[Candidate]) -> list[Candidate]:
    """Leave out what rests on idle time, if that may be lost rows."""
    if situation.completeness.verdict is not Verdict.UNRELIABLE:
        return candidates
    return [one for one in candidates if one.kind not in (FixKind.HOST, FixKind.OUTSIDE)]


def _step(situation: Situation, done: _Done, candidate: Candidate) -> float:
    """Return the step with a further fix."""
    after = _with(done, candidate)
    retimed = situation.retime(after.speedups, after.graph_replay)
    return max(retimed - after.off_ns, 1.0)


def _with(done: _Done, candidate: Candidate) -> _Done:
    return replace(
        done,
        speedups=done.speedups + candidate.speedups,
        graph_replay=done.graph_replay or candidate.graph_replay,
        off_ns=done.off_ns + candidate.off_ns,
        requests=done.requests * candidate.requests,
    )


def _factor(before_ns: float, after_ns: float, candidate: Candidate) -> float:
    return candidate.requests * before_ns / after_ns


def _fix(situation: Situation, done: _Done, candidate: Candidate, factor: float, after_ns: float) -> Fix:
    assert situation.prediction is not None  # noqa: S101  (the caller looked)
    rate = situation.tokens_per_second
    overall = done.requests * situation.prediction.baseline_ns / after_ns
    return Fix(
        kind=candidate.kind,
        what=candidate.what,
        names=candidate.names,
        evidence=candidate.evidence,
        step_ns=after_ns,
        factor=factor,
        tokens_per_second=None if rate is None else rate * overall,
        is_bound=candidate.is_bound,
    )

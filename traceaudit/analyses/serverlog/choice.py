"""Which step time to hold a trace against, when a user states one and a server's log allows others."""

from traceaudit.analyses.serverlog.readings import same_batch, step_readings, wall_of_log
from traceaudit.model.results.ledger import Wall
from traceaudit.model.results.onepage import StepChoice
from traceaudit.model.results.serverlog import ServerReport, StepReading

__all__ = ["choose_step"]


def choose_step(
    report: ServerReport,
    *,
    stated: Wall | None = None,
    derived: Wall | None = None,
    tokens_per_second: float | None = None,
    concurrency: int | None = None,
) -> StepChoice:
    """Take the step time that the lines of the log bear out.

    Parameters
    ----------
    report
        The log.
    stated
        A step time that the user measured as such; it stands, and the log's readings are shown beside it.
    derived
        A step time that follows from a rate and a number of requests, or from a benchmark; the log's comes first.
    tokens_per_second, concurrency
        The rate and the requests that a client saw.
    """
    readings = step_readings(report, tokens_per_second=tokens_per_second, concurrency=concurrency)
    if stated is not None:
        return StepChoice(stated, "measured as such; the log's readings are beside it", readings=readings)
    wall = wall_of_log(readings)
    if wall is None:
        return StepChoice(derived, "the log gives no step time", readings=readings)
    return StepChoice(wall, _reason(report, readings, concurrency), given=derived, readings=readings)


def _reason(report: ServerReport, readings: tuple[StepReading, ...], concurrency: int | None) -> str:
    asked = concurrency or report.expected
    line = report.decided_by[0] if report.decided_by else None
    where = "" if line is None else f" ({line.path}:{line.number})"
    if asked is not None and not same_batch(report.steady_batch, asked):
        return f"the log shows {report.steady_batch} running, not {asked}{where}"
    if any(reading.holds for reading in readings):
        return f"the log shows {report.steady_batch} running{where}"
    return "no line of the log decides; this reading is the first that nothing speaks against"

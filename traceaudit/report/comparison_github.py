"""`diff` and `check` as workflow commands of GitHub Actions, which become annotations of the pull request."""

from typing import TYPE_CHECKING

from traceaudit.model.findings import Severity
from traceaudit.model.results.diff import Outcome
from traceaudit.report.comparison_words import headline
from traceaudit.report.format import plain
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.diff import CheckResult, Ruling

__all__ = ["check", "diff"]

LEVELS = {Outcome.PASS: "notice", Outcome.FAIL: "error", Outcome.INCONCLUSIVE: "warning"}
MOST = 9
"""GitHub shows ten annotations of a level in one step; the verdict is one of them."""


def diff(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a comparison."""
    return _commands("diff", result)


def check(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write a judgement."""
    return _commands("check", result)


def _commands(command: str, result: "CheckResult") -> str:
    lines = [_command(LEVELS[result.verdict], f"traceaudit {command}: {result.verdict}", headline(result))]
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE):
        rulings = [ruling for ruling in result.rulings if ruling.outcome is outcome]
        lines += [_of_ruling(result, ruling) for ruling in rulings[:MOST]]
    lines += [
        _command("warning", finding.code, finding.message)
        for finding in result.completeness.findings
        if finding.severity is not Severity.INFO
    ]
    return "\n".join(lines) + "\n"


def _of_ruling(result: "CheckResult", ruling: "Ruling") -> str:
    known = ruling.line is not None and result.budget is not None
    return _command(
        LEVELS[ruling.outcome],
        ruling.rule,
        ruling.message,
        file=result.budget if known else None,
        line=ruling.line if known else None,
    )


def _command(level: str, title: str, message: str, *, file: str | None = None, line: int | None = None) -> str:
    properties = {"file": file, "line": None if line is None else str(line), "title": title}
    text = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value is not None)
    return f"::{level} {text}::{_data(message)}"


def _data(text: str) -> str:
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

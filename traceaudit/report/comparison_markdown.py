"""`diff` and `check` as a pull-request comment: verdict, the five rows that matter, details folded."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from traceaudit.model.findings import Severity
from traceaudit.model.results.diff import Outcome
from traceaudit.report.comparison_words import (
    MEASURE_LABELS,
    Row,
    change_texts,
    headline,
    measure_rows,
    noise_note,
    noise_text,
    notes,
    rows_that_matter,
    share_text,
    side_text,
    signed,
    unsettled,
)
from traceaudit.report.format import count_text, duration
from traceaudit.report.markdown import code, escape
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.diff import CheckResult

__all__ = ["check", "diff"]

MARKS = {Outcome.PASS: "🟢", Outcome.FAIL: "🔴", Outcome.INCONCLUSIVE: "🟡"}
MOST_ROWS = 5
MOST_FOLDED = 60
MOST_RULINGS = 5
NAME_LENGTH = 80
HEADINGS = ("kernel", "base", "head", "change", "", "noise", "status")
SIDES = "lrrrrrl"


def diff(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a comparison."""
    return _comment("diff", result)


def check(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write a judgement."""
    return _comment("check", result)


def _comment(command: str, result: "CheckResult") -> str:
    lines = [
        f"### {MARKS[result.verdict]} traceaudit {command}: {result.verdict}",
        "",
        f"{escape(headline(result)).capitalize()}.",
        "",
    ]
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE):
        messages = unsettled(result, outcome)
        lines += [f"- **{outcome}**: {escape(message)}" for message in messages[:MOST_RULINGS]]
        if len(messages) > MOST_RULINGS:
            lines.append(f"- … and {len(messages) - MOST_RULINGS} more")
    lines += [
        f"- **{finding.code}** ({finding.severity}): {escape(finding.message)}"
        for finding in result.completeness.findings
        if finding.severity is not Severity.INFO
    ]
    rows, more = rows_that_matter(result, MOST_ROWS)
    lines += ["", *_table(HEADINGS, SIDES, map(_cells, rows))] if rows else []
    lines += ["", *(f"{escape(note)}" for note in notes(result)), ""]
    lines += _folded("The step and its accounts", _step(result))
    if more:
        rest = rows_that_matter(result, MOST_ROWS + MOST_FOLDED)[0][MOST_ROWS:]
        lines += _folded(f"{count_text(more, 'more kernel')}", _table(HEADINGS, SIDES, map(_cells, rest)))
    changed = [
        f"- {code(_cut(result.diff.shown(kernel.name)) + result.diff.size_mark(kernel), cell=False)}: "
        f"{escape('; '.join(texts))}"
        for kernel in result.diff.kernels
        if (texts := change_texts(result.diff, kernel))
    ]
    if changed:
        lines += _folded("Launched otherwise", changed[:MOST_FOLDED])
    sides = [
        f"- {name}: {escape(side_text(side))}"
        for name, side in (("base", result.diff.base), ("head", result.diff.head))
    ]
    lines += _folded("What was compared", sides)
    return "\n".join(lines).rstrip() + "\n"


def _cut(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"


def _cells(row: Row) -> list[str]:
    effect = row.effect
    status = f"**{row.status}**" if row.violates else f"{row.status} (?)" if row.suspects else row.status
    return [
        code(_cut(row.name) + row.size),
        "" if effect.base_ns is None else duration(effect.base_ns),
        "" if effect.head_ns is None else duration(effect.head_ns),
        signed(effect.delta_ns),
        share_text(effect),
        f"±{duration(effect.noise_ns)}",
        status,
    ]


def _step(result: "CheckResult") -> list[str]:
    rows = []
    measures = measure_rows(result)
    for row in measures:
        effect = row.effect
        rows.append(
            [
                MEASURE_LABELS.get(row.name, row.name),
                "" if effect.base_ns is None else duration(effect.base_ns),
                "" if effect.head_ns is None else duration(effect.head_ns),
                signed(effect.delta_ns),
                share_text(effect),
                noise_text(row, duration),
                "**yes**" if row.violates else "yes" if row.judged or row.suspects else "no",
            ]
        )
    note = noise_note(measures)
    table = _table(("per step", "base", "head", "change", "", "noise", "judged"), SIDES, rows)
    return [*table, "", escape(f"{note}.")] if note else table


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def _table(headings: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> list[str]:
    rule = ["---:" if side == "r" else "---" for side in sides]
    return [f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)]

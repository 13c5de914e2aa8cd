"""`roofline` for a pull request or an issue."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from traceaudit.report.distance_words import distance_rows
from traceaudit.report.format import bytes_text, duration, percent
from traceaudit.report.markdown import escape, verdict_lines
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.roofline_words import (
    compute_text,
    exchange_text,
    floor_rows,
    gap_texts,
    ranks_text,
    requests_text,
    size_text,
)

if TYPE_CHECKING:
    from traceaudit.model.results.roofline import Roofline

__all__ = ["roofline"]


def roofline(result: "Roofline", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a floor."""
    setting = result.setting
    lines = [
        f"### traceaudit roofline: {escape(setting.model)} on {escape(setting.gpu or 'a GPU')}",
        "",
        escape(f"{size_text(setting)}; {requests_text(setting)}; {ranks_text(setting)}"),
        "",
        *(verdict_lines(result.completeness) if result.findings else ()),
        escape(f"At {result.peak_gbps:,.0f} GB/s. {compute_text(result)}."),
        "",
        *_table(("bound", "bytes a GPU", "time", "when"), "lrrl", floor_rows(result)),
        f"**{result.tokens_per_second_at_floor:,.0f} tokens/s** at the expected floor.",
        "",
    ]
    if result.gap is not None:
        lines += [*(f"- {escape(text)}" for text in gap_texts(result.gap)), ""]
    if result.distance is not None:
        terms = [(name, *(duration(time) for time in times)) for name, *times in distance_rows(result.distance)]
        lines += _table(("from the floor to the step", "took", "floor", "over floor"), "lrrr", terms)
    total = result.weight_bytes.expected + result.kv_bytes
    rows = (
        (
            escape(item.name.replace("_", " ")),
            bytes_text(item.size.expected),
            percent(item.size.expected, total),
            escape(item.format),
            escape(item.sharing),
        )
        for item in sorted(result.components, key=lambda item: -item.size.expected)
    )
    lines += _table(("part", "bytes", "share", "stored as", "over tp"), "lrrll", rows)
    exchanged = exchange_text(result.communication)
    if exchanged:
        lines += [f"Communication, not part of the floor: {escape(exchanged)}.", ""]
    lines += ["<details><summary>Assumptions</summary>", ""]
    lines += [f"- {escape(text)}" for text in result.assumptions]
    return "\n".join([*lines, "", "</details>"]) + "\n"


def _table(heads: tuple[str, ...], sides: str, rows: Iterable[tuple[str, ...]]) -> list[str]:
    rule = "|".join(" ---: " if side == "r" else " --- " for side in sides)
    body = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{rule}|", *body, ""]

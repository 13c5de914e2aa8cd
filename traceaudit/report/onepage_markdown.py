"""The audit on one page, for a pull request or an issue."""

from typing import TYPE_CHECKING

from traceaudit.model.findings import Verdict
from traceaudit.report.format import DOUBT, duration, percent
from traceaudit.report.kernel_words import grid_text, peak_text, rate_text
from traceaudit.report.markdown import MARKS, code, escape, markdown_table
from traceaudit.report.onepage_bounds import decision_lines, floor_block, gain_block, hidden_text, kernels_answer
from traceaudit.report.onepage_words import Block, batch_block, believe_block, step_block, subject, where_block
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.onepage import OnePage

__all__ = ["onepage"]

MOST_KERNELS = 6


def onepage(result: "OnePage", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write the page."""
    lines = [
        f"### traceaudit reconcile: {code(result.path, cell=False)}",
        "",
        f"{MARKS[result.completeness.verdict]} {escape(subject(result))}",
        "",
    ]
    for block in (believe_block(result), step_block(result), where_block(result), floor_block(result)):
        lines += _block(block)
    lines += [*_block(batch_block(result)), *_kernels(result), *_block(gain_block(result))]
    lines += ["**Decision**", ""]
    for head, evidence in decision_lines(result):
        number, _, text = head.partition(". ")
        lines.append(f"{number}. **{escape(text)}**: {escape(evidence)}")
    if not result.fixes:
        lines.append("Nothing was found that buys 2 % or more.")
    return "\n".join(lines).rstrip() + "\n"


def _block(block: Block) -> list[str]:
    lines = [f"**{block.question}** {escape(block.answer)}", ""]
    return [*lines, *(f"- {escape(text)}" for text in block.evidence), ""] if block.evidence else lines


def _kernels(result: "OnePage") -> list[str]:
    if not result.kernels:
        return []
    mark = DOUBT if result.completeness.verdict is Verdict.UNRELIABLE else ""
    rows = [
        (
            code(line.row.shown_name),
            duration(line.op_time_ns) + mark,
            percent(line.share_of_busy_frac, 1) + mark,
            "-" if line.save_ns is None else duration(max(line.save_ns, 0.0)) + mark,
            rate_text(line.row),
            peak_text(line.row),
            grid_text(line.row),
        )
        for line in result.kernels[:MOST_KERNELS]
    ]
    headings = ("kernel", "a step", "of op time", "saves", "GB/s", "of peak", "grid")
    lines = [f"**Which kernels?** {escape(kernels_answer(result))}", "", *markdown_table(headings, "lrrrrrr", rows)]
    hidden = hidden_text(result.hidden)
    return [*lines, f"- {escape(hidden)}", ""] if hidden else lines

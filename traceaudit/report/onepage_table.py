"""The audit on one page, for a terminal: a question a paragraph, its answer first, and the decision last."""

from dataclasses import replace
from typing import TYPE_CHECKING

from traceaudit.model.findings import Verdict
from traceaudit.report.format import DOUBT, percent, scale_for
from traceaudit.report.kernel_words import bound_text, grid_text, marks_text, peak_text, rate_text
from traceaudit.report.onepage_bounds import decision_lines, floor_block, gain_block, hidden_text, kernels_answer
from traceaudit.report.onepage_words import Block, batch_block, believe_block, step_block, subject, where_block
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.terminal.bars import add_section
from traceaudit.report.terminal.canvas import Canvas, Column
from traceaudit.report.terminal.verdict import STYLES, add_title
from traceaudit.report.waterfall import Role, Section, sections

if TYPE_CHECKING:
    from traceaudit.model.results.onepage import OnePage

__all__ = ["onepage"]

LABEL = 15
MOST_KERNELS = 6


def onepage(result: "OnePage", page: Page = PLAIN_PAGE) -> str:
    """Write the page."""
    canvas = Canvas(page)
    add_title(canvas, "reconcile", result.path, result.sources)
    canvas.paragraph((subject(result), "dim"), indent=2, hang=2)
    canvas.blank()
    _block(canvas, believe_block(result), STYLES[result.completeness.verdict])
    _block(canvas, step_block(result))
    _block(canvas, where_block(result))
    _bars(canvas, result)
    _block(canvas, floor_block(result))
    _block(canvas, batch_block(result))
    _kernels(canvas, result)
    _block(canvas, gain_block(result))
    _decision(canvas, result)
    return canvas.text()


def _block(canvas: Canvas, block: Block, style: str = "bold") -> None:
    canvas.paragraph((f"{block.question:<{LABEL}}", "bold"), (block.answer, style), hang=LABEL)
    for text in block.evidence:
        canvas.paragraph((text, ""), indent=LABEL, hang=2)


def _bars(canvas: Canvas, result: "OnePage") -> None:
    """Draw the accounts of the step, without their parts: the evidence names those."""
    unreliable = result.completeness.verdict is Verdict.UNRELIABLE
    layout = sections(result.device, unreliable=unreliable)
    if not layout:
        return
    first = layout[0]
    kept = [line for line in first.lines if line.role not in (Role.PART, Role.WHOLE) or line.label == first.whole]
    lines = tuple(replace(line, label=line.label.partition(", split")[0]) for line in kept)
    add_section(canvas, Section(first.title, first.whole, first.whole_ns, lines), alone=True)
    if any(line.doubtful for line in lines):
        canvas.line((f"{DOUBT} the findings make these numbers doubtful", "dim"), indent=2)


def _kernels(canvas: Canvas, result: "OnePage") -> None:
    shown = result.kernels[:MOST_KERNELS]
    if not shown:
        return
    canvas.paragraph((f"{'Which kernels?':<{LABEL}}", "bold"), (kernels_answer(result), "bold"), hang=LABEL)
    mark = DOUBT if result.completeness.verdict is Verdict.UNRELIABLE else ""
    scale = scale_for(max(line.op_time_ns for line in shown))
    canvas.table(
        [
            Column(f"{scale.unit} a step", right=True),
            Column("op time", right=True),
            Column("saves", right=True),
            Column("GB/s", right=True),
            Column("of peak", right=True),
            Column("bound"),
            Column("grid", right=True),
            Column("kernel", flexible=True),
        ],
        [
            [
                scale.text(line.op_time_ns) + mark,
                percent(line.share_of_busy_frac, 1) + mark,
                "-" if line.save_ns is None else scale.text(max(line.save_ns, 0.0)) + mark,
                rate_text(line.row),
                peak_text(line.row),
                bound_text(line.row) if line.row.kind == "compute" else line.row.kind,
                grid_text(line.row),
                line.row.shown_name,
            ]
            for line in shown
        ],
    )
    for text in (marks_text([line.row for line in shown]), hidden_text(result.hidden)):
        if text:
            canvas.paragraph((text, ""), indent=LABEL, hang=2)


def _decision(canvas: Canvas, result: "OnePage") -> None:
    canvas.blank()
    lines = decision_lines(result)
    if not lines:
        canvas.paragraph(
            (f"{'Decision':<{LABEL}}", "bold"), ("nothing found that buys 2 % or more", "bold"), hang=LABEL
        )
    for number, (head, evidence) in enumerate(lines):
        label = "Decision" if number == 0 else ""
        canvas.paragraph((f"{label:<{LABEL}}", "bold"), (head, "bold" if number == 0 else ""), hang=LABEL + 3)
        canvas.paragraph((evidence, "dim"), indent=LABEL + 3)

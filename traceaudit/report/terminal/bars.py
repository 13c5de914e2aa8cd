"""The waterfall of a step: one line a term, with its bar where it lies on the step."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from rich.cells import cell_len

from traceaudit.report.format import DOUBT, count_text, percent, scale_for
from traceaudit.report.terminal.canvas import Canvas, fit
from traceaudit.report.waterfall import Line, Role, Section

__all__ = ["add_section"]

STYLES = {
    Role.WHOLE: "bold",
    Role.COMPUTE: "green",
    Role.COMM: "magenta",
    Role.COPY: "cyan",
    Role.IDLE: "red",
    Role.PART: "dim",
    Role.RESIDUAL: "blue",
}
EIGHTHS = " ▏▎▍▌▋▊▉"
LABEL_MOST = 44
PARTS_MOST = 8
SHARE_WIDTH = 8


def add_section(canvas: Canvas, section: Section, *, alone: bool) -> None:
    """Add the lines of a section, each with its share of the whole and its bar on the step."""
    lines = _folded(section.lines)
    scale = scale_for(max(abs(line.time_ns) for line in lines))
    labels = [("  " if line.role is Role.PART else "") + _split(line)[0] for line in lines]
    times = [scale.text(line.time_ns) + (DOUBT if line.doubtful else " ") for line in lines]
    label_width = min(max(map(cell_len, labels)), LABEL_MOST)
    time_width = max(len(scale.unit) + 1, *map(len, times))
    bar_width = canvas.page.width - label_width - time_width - SHARE_WIDTH - 6
    extent_ns = max(line.at_ns + max(line.time_ns, 0) for line in lines)
    title = "" if alone else section.title
    head = f"{title:<{label_width}}  {scale.unit + ' ':>{time_width}} {'% of':>{SHARE_WIDTH - 1}} {section.whole}"
    canvas.line((head, "dim"), indent=2)
    for line, label, time in zip(lines, labels, times, strict=True):
        style = STYLES[line.role]
        name = fit(label, label_width)
        canvas.line(
            (name + " " * (label_width - cell_len(name)), style if line.role in (Role.WHOLE, Role.PART) else ""),
            f"  {time:>{time_width}} {_share(line, section):>{SHARE_WIDTH}} ",
            (_bar(line, extent_ns, bar_width), style),
            indent=2,
        )
        if _split(line)[1]:
            canvas.line((_split(line)[1], "dim"), indent=4)
    if section.zeros:
        canvas.line((f"0: {', '.join(section.zeros)}", "dim"), indent=2)


def _split(line: Line) -> tuple[str, str]:
    """Part the one label that is too long for its column; names of causes may hold commas and stay whole."""
    label, comma, rest = line.label.partition(", ")
    return (label, rest) if line.role is Role.IDLE and comma else (line.label, "")


def _share(line: Line, section: Section) -> str:
    return percent(line.time_ns, section.whole_ns).rstrip("%") + (DOUBT if line.share_doubtful else " ")


def _folded(lines: Sequence[Line]) -> list[Line]:
    """Keep the largest parts of each account; one line says of the others how many they are and what they take."""
    folded: list[Line] = []
    for is_part, group in groupby(lines, lambda line: line.role is Role.PART):
        members = list(group)
        rest = members[PARTS_MOST:] if is_part and len(members) > PARTS_MOST + 1 else []
        folded += members[: len(members) - len(rest)]
        if rest:
            label = count_text(len(rest), "smaller cause")
            folded.append(replace(rest[0], label=label, time_ns=sum(line.time_ns for line in rest)))
    return folded


def _bar(line: Line, extent_ns: float, width: int) -> str:
    """Draw a bar in its place on the step; a negative one points back from where the window ends."""
    if extent_ns <= 0 or not line.time_ns:
        return ""
    per_cell = width / extent_ns
    if line.time_ns < 0:
        end = round(line.at_ns * per_cell)
        cells = max(1, round(-line.time_ns * per_cell))
        return " " * (end - cells) + "◂" + "╌" * (cells - 1)
    start = min(int(line.at_ns * per_cell), width - 1)
    if line.role is Role.PART:
        return " " * start + "░" * max(1, round((line.at_ns + line.time_ns) * per_cell) - start)
    eighths = max(1, round((line.at_ns + line.time_ns) * per_cell * 8) - start * 8)
    return " " * start + "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()

"""A page of styled lines. Text reaches it as plain strings, never as markup, and is escaped on the way in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import StringIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from traceaudit.report.format import plain, shorten
from traceaudit.report.registry import Page

__all__ = ["Canvas", "Column", "fit"]

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: heading, side, and whether it gives way when the page is narrow."""

    heading: str
    right: bool = False
    flexible: bool = False


@dataclass(slots=True)
class Canvas:
    """Collects lines and writes them at the page's width."""

    page: Page
    lines: list[Text] = field(default_factory=list)

    def line(self, *spans: tuple[str, str] | str, indent: int = 0) -> None:
        """Add one line of (text, style) spans; what does not fit is cut off."""
        text = Text(" " * indent, no_wrap=True, overflow="ellipsis")
        for span in spans:
            content, style = span if isinstance(span, tuple) else (span, "")
            text.append(plain(content), style=style)
        text.rstrip()
        text.truncate(self.page.width, overflow="ellipsis")
        self.lines.append(text)

    def blank(self) -> None:
        """Add an empty line, never two in a row."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def heading(self, title: str, rest: str = "") -> None:
        """Add a blank line and a heading, with more about it behind."""
        self.blank()
        self.paragraph((title, "bold"), ("  " + rest if rest else "", ""), hang=2)

    def paragraph(self, *spans: tuple[str, str], indent: int = 0, hang: int = 0) -> None:
        """Add text that wraps at words, with `hang` more columns of indent from the second line on."""
        text = Text()
        for content, style in spans:
            text.append(plain(content), style=style)
        width = self.page.width - indent - hang
        for number, row in enumerate(text.wrap(Console(width=width), width)):
            row.rstrip()
            self.lines.append(Text(" " * (indent + (hang if number else 0))) + row)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], indent: int = 2) -> None:
        """Add a table; flexible columns share what the others leave, and names are cut in the middle."""
        cells = [[plain(cell) for cell in row] for row in rows]
        widths = self._widths(columns, cells, indent)
        self._row(columns, [column.heading for column in columns], widths, indent, "dim")
        for row in cells:
            self._row(columns, row, widths, indent, "")

    def text(self) -> str:
        """Write the page, every line without blanks at its end."""
        target = StringIO()
        console = Console(
            file=target,
            width=self.page.width,
            color_system="standard" if self.page.color else None,
            force_terminal=self.page.color,
            no_color=not self.page.color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        for line in self.lines:
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
        return target.getvalue()

    def _widths(self, columns: Sequence[Column], cells: list[list[str]], indent: int) -> list[int]:
        widths = [
            max([cell_len(column.heading), *(cell_len(row[number]) for row in cells)])
            for number, column in enumerate(columns)
        ]
        excess = indent + sum(widths) + GAP * (len(columns) - 1) - self.page.width
        flexible = [number for number, column in enumerate(columns) if column.flexible]
        while excess > 0 and flexible:
            widest = max(flexible, key=lambda number: widths[number])
            if widths[widest] <= cell_len(columns[widest].heading):
                break
            widths[widest] -= 1
            excess -= 1
        return widths

    def _row(
        self, columns: Sequence[Column], row: Sequence[str], widths: Sequence[int], indent: int, style: str
    ) -> None:
        parts = []
        for column, cell, width in zip(columns, row, widths, strict=True):
            text = fit(cell, width)
            pad = " " * (width - cell_len(text))
            parts.append(pad + text if column.right else text + pad)
        self.line(((" " * GAP).join(parts), style), indent=indent)


def fit(text: str, width: int) -> str:
    """Cut the middle out of text until it takes at most `width` columns."""
    if cell_len(text) <= width:
        return text
    wanted = width
    while wanted > 0 and cell_len(shorten(text, wanted)) > width:
        wanted -= 1
    return set_cell_size(shorten(text, wanted), min(width, cell_len(shorten(text, wanted))))

"""A page of styled lines. Text reaches it as plain strings, never as markup, and is escaped on the way in.

Of `rich` it takes cell widths and styles alone: its console takes longer to import than a small trace to read.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

from rich.cells import cell_len, set_cell_size

from traceaudit.report.format import plain, shorten
from traceaudit.report.registry import Page

__all__ = ["LEAST_NAME", "Canvas", "Column", "Span", "fit"]

GAP = 2
LEAST_NAME = 20
"""Columns of the page that a name of a kernel gets at least."""
MOST_CUTS = 4
"""Times that names are cut anew because different ones read the same."""
Span = tuple[str, str]
"""Text and the style it is written in, such as ``("window", "bold")``."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    right
        Whether its cells stand at its right side.
    flexible
        Whether its cells are cut when the page is narrow, down to `least` columns of the page.
    drop
        Place in the order in which columns are left out when the page is narrow, 1 first; 0 is never left out.
    """

    heading: str
    right: bool = False
    flexible: bool = False
    least: int = 0
    drop: int = 0


@dataclass(slots=True)
class Canvas:
    """Collects lines and writes them at the page's width."""

    page: Page
    lines: list[list[Span]] = field(default_factory=list)

    def line(self, *spans: Span | str, indent: int = 0) -> None:
        """Add one line of spans; what does not fit is cut off."""
        styled = [(" " * indent, ""), *((span, "") if isinstance(span, str) else span for span in spans)]
        self.lines.append(_cut([(plain(text), style) for text, style in styled], self.page.width))

    def blank(self) -> None:
        """Add an empty line, never two in a row."""
        if self.lines and self.lines[-1]:
            self.lines.append([])

    def heading(self, title: str, rest: str = "") -> None:
        """Add a blank line and a heading, with more about it behind."""
        self.blank()
        self.paragraph((title, "bold"), ("  " + rest if rest else "", ""), hang=2)

    def paragraph(self, *spans: Span, indent: int = 0, hang: int = 0) -> None:
        """Add text that wraps at words, with `hang` more columns of indent from the second line on."""
        row: list[Span] = []
        used, margin = 0, indent
        for text, style in _words(spans, self.page.width - indent - hang):
            if row and used + cell_len(text.rstrip()) > self.page.width - margin:
                self.line((" " * margin, ""), *row)
                row, used, margin = [], 0, indent + hang
                text = text.lstrip()  # noqa: PLW2901  (blanks belong to the line before)
            row.append((text, style))
            used += cell_len(text)
        self.line((" " * margin, ""), *row)

    def table(
        self, columns: Sequence[Column], rows: Iterable[Sequence[str]], indent: int = 2, below: Sequence[str] = ()
    ) -> None:
        """Add a table; flexible columns share what the others leave, and names are cut in the middle.

        Where that leaves them too little, columns are left out, and a line below the table names them. `below` has for
        each row what stands on lines of its own below it.
        """
        cells = [[plain(cell) for cell in row] for row in rows]
        shown = self._shown(columns, cells, indent)
        kept = [columns[number] for number in shown]
        cells = [[row[number] for number in shown] for row in cells]
        widths = self._widths(kept, cells, indent)
        self._row(kept, [column.heading for column in kept], widths, indent, "dim")
        fitted = [_fit_apart([row[number] for row in cells], width) for number, width in enumerate(widths)]
        for row, more in zip_longest(zip(*fitted, strict=True), below):
            self._row(kept, row, widths, indent, "")
            if more:
                self.paragraph((more, "dim"), indent=indent + 2 * GAP, hang=GAP)
        if missing := [column.heading for column in columns if column not in kept]:
            self.paragraph((f"no room for {', '.join(missing)}; COLUMNS sets the width", "dim"), indent=indent)

    def text(self) -> str:
        """Write the page, every line without blanks at its end."""
        paint = _painter() if self.page.color else lambda text, _: text
        return "".join("".join(paint(text, style) for text, style in _joined(line)) + "\n" for line in self.lines)

    def _shown(self, columns: Sequence[Column], cells: list[list[str]], indent: int) -> list[int]:
        """Return the columns that stay, so many that flexible ones get their least width."""
        least = [
            min(width, max(column.least, cell_len(column.heading))) if column.flexible else width
            for column, width in zip(columns, _natural(columns, cells), strict=True)
        ]
        shown = list(range(len(columns)))
        for number in sorted((n for n in shown if columns[n].drop), key=lambda n: columns[n].drop):
            if indent + sum(least[n] for n in shown) + GAP * (len(shown) - 1) <= self.page.width:
                break
            shown.remove(number)
        return shown

    def _widths(self, columns: Sequence[Column], cells: list[list[str]], indent: int) -> list[int]:
        widths = _natural(columns, cells)
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


def _natural(columns: Sequence[Column], cells: list[list[str]]) -> list[int]:
    """Return the width that each column would take."""
    return [
        max([cell_len(column.heading), *(cell_len(row[number]) for row in cells)])
        for number, column in enumerate(columns)
    ]


def _cut(spans: Sequence[Span], width: int) -> list[Span]:
    """Cut the blanks off a line's end, and then what is beyond `width` columns."""
    kept = _stripped(spans)
    if sum(cell_len(text) for text, _ in kept) > width:
        kept = _head(kept, width - 1)
    return kept


def _stripped(spans: Sequence[Span]) -> list[Span]:
    kept = list(spans)
    while kept and not kept[-1][0].rstrip():
        kept.pop()
    if kept:
        kept[-1] = (kept[-1][0].rstrip(), kept[-1][1])
    return kept


def _head(spans: Sequence[Span], width: int) -> list[Span]:
    head: list[Span] = []
    for text, style in spans:
        room = width - sum(cell_len(part) for part, _ in head)
        if cell_len(text) > room:
            return [*head, (set_cell_size(text, room) + "…", style)]
        head.append((text, style))
    return head


def _words(spans: Iterable[Span], width: int) -> Iterator[Span]:
    """Yield words with the blanks behind them; a word wider than the page comes in pieces."""
    for text, style in spans:
        for word in re.findall(r"\s*\S+\s*|\s+", plain(text)):
            rest = word
            while cell_len(rest.rstrip()) > width:
                piece = next(n for n in range(len(rest), 0, -1) if cell_len(rest[:n]) <= width)
                yield rest[:piece], style
                rest = rest[piece:]
            yield rest, style


def _joined(spans: Sequence[Span]) -> Iterator[Span]:
    """Join neighbours of one style."""
    for style, group in groupby(spans, lambda span: span[1]):
        yield "".join(text for text, _ in group), style


def _painter() -> Callable[[str, str], str]:
    """Return what writes text in a style, as terminals read it."""
    from rich.color import ColorSystem
    from rich.style import Style

    return lambda text, style: Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if style else text


def _fit_apart(texts: Sequence[str], width: int) -> list[str]:
    """Cut texts; where different ones would read the same, show what follows behind that in which they are alike."""
    cut = {text: fit(text, width) for text in texts}
    for _ in range(MOST_CUTS):
        alike: dict[str, list[str]] = {}
        for text, short in cut.items():
            alike.setdefault(short, []).append(text)
        for group in alike.values():
            if len(group) > 1:
                cut |= {text: _from(text, max(_alike(group) - 1, 0), width) for text in group}
    return [cut[text] for text in texts]


def _alike(texts: Sequence[str]) -> int:
    """Return how many characters texts have in common at their beginning."""
    shortest = min(map(len, texts))
    return next((at for at in range(shortest) if len({text[at] for text in texts}) > 1), shortest)


def _from(text: str, at: int, width: int) -> str:
    """Cut text to its head and what stands from a place on."""
    head = min(width // 3, at)
    shown = f"{text[:head]}…{text[at:]}" if at > head else text
    return shown if cell_len(shown) <= width else set_cell_size(shown, max(width - 1, 0)) + "…"


def fit(text: str, width: int) -> str:
    """Cut the middle out of text until it takes at most `width` columns."""
    if cell_len(text) <= width:
        return text
    wanted = width
    while wanted > 0 and cell_len(shorten(text, wanted)) > width:
        wanted -= 1
    return set_cell_size(shorten(text, wanted), min(width, cell_len(shorten(text, wanted))))

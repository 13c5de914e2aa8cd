import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from traceaudit.report import Page
from traceaudit.report.terminal.canvas import Canvas, Column, fit

texts = st.text(st.characters(categories=["L", "N", "P", "Zs", "Cc"]), max_size=200)


@given(texts, st.integers(min_value=0, max_value=12), st.integers(min_value=0, max_value=12))
def test_paragraphs_fit_and_lose_nothing(text, indent, hang):
    canvas = Canvas(Page(width=40))
    canvas.paragraph((text, "red"), ("  end", "bold"), indent=indent, hang=hang)
    lines = canvas.text().splitlines()
    assert all(cell_len(line) <= 40 for line in lines)
    shown = Canvas(Page(width=10_000))
    shown.paragraph((text, ""), ("  end", ""))
    assert re.sub(r"\s", "", canvas.text()) == re.sub(r"\s", "", shown.text())


def test_a_word_that_just_fits_stays_whole():
    for width in range(8, 40):
        canvas = Canvas(Page(width=width))
        canvas.paragraph(("one three fifteen a be sea four", ""))
        assert "…" not in canvas.text()
        assert canvas.text().split() == ["one", "three", "fifteen", "a", "be", "sea", "four"]


def test_continued_lines_hang():
    canvas = Canvas(Page(width=21))
    canvas.paragraph(("hint: ", "dim"), ("one two three four five", ""), indent=2, hang=6)
    assert canvas.text() == "  hint: one two three\n        four five\n"


def test_lines_are_cut_to_the_page():
    canvas = Canvas(Page(width=10))
    canvas.line("a" * 4, ("b" * 20, "bold"))
    canvas.line("日本語日本語")
    assert canvas.text() == "aaaabbbbb…\n日本語日 …\n"


def test_tables_give_way_in_flexible_columns():
    canvas = Canvas(Page(width=24))
    canvas.table(
        [Column("n", right=True), Column("name", flexible=True)], [["1", "void gemm<bf16>(Params)"], ["22", "b"]]
    )
    assert canvas.text() == "   n  name\n   1  void gemm<b…arams)\n  22  b\n"


def test_columns_are_left_out_before_a_name_gets_less_than_its_least_width():
    columns = [
        Column("a", drop=2),
        Column("b", right=True),
        Column("c", drop=1),
        Column("name", flexible=True, least=8),
    ]
    row = [["111", "222", "333", "a_long_name_of_a_kernel"]]
    shown = {}
    for width in (60, 25, 24, 20, 19):
        canvas = Canvas(Page(width=width))
        canvas.table(columns, row)
        shown[width] = canvas.text().splitlines()[1:]
    assert shown[60] == ["  111  222  333  a_long_name_of_a_kernel"]
    assert shown[25] == ["  111  222  333  a_lon…el"]  # 2 + 3 * (3 + 2) + 8
    assert shown[24][0] == "  111  222  a_long_…rnel"
    assert shown[24][1:] == ["  no room for c; COLUMNS", "  sets the width"]
    assert shown[20][0] == "  111  222  a_lon…el"
    assert shown[19][0] == "  222  a_long_…rnel"


def test_numbers_are_never_cut_for_a_name():
    canvas = Canvas(Page(width=12))
    canvas.table([Column("n", right=True), Column("name", flexible=True, least=8)], [["123", "abcdefgh"]])
    assert canvas.text().splitlines()[1] == "  123  abc…h"


def test_names_that_would_be_cut_alike_are_cut_elsewhere():
    canvas = Canvas(Page(width=14))
    canvas.table([Column("name", flexible=True)], [["aaaa_64x16_2_kernel"], ["aaaa_64x16_4_kernel"], ["other"]])
    rows = canvas.text().splitlines()[1:]
    assert rows == ["  aaaa…_2_ker…", "  aaaa…_4_ker…", "  other"]


def test_lines_below_a_row_wrap():
    canvas = Canvas(Page(width=16))
    canvas.table([Column("n"), Column("name", flexible=True)], [["1", "a"], ["2", "b"]], below=["one two three", ""])
    assert canvas.text() == "  n  name\n  1  a\n      one two\n        three\n  2  b\n"


def test_blank_lines_never_double():
    canvas = Canvas(Page())
    canvas.blank()
    canvas.line("a")
    canvas.blank()
    canvas.blank()
    canvas.heading("b")
    assert canvas.text() == "a\n\nb\n"


def test_styles_show_with_colour_only():
    for color, text in ((True, "\x1b[1ma\x1b[0m\x1b[31mb\x1b[0mc\n"), (False, "abc\n")):
        canvas = Canvas(Page(color=color))
        canvas.line(("a", "bold"), ("b", "red"), "c")
        assert canvas.text() == text


@given(texts, st.integers(min_value=0, max_value=30))
def test_fit_takes_at_most_its_width(text, width):
    assert cell_len(fit(text, width)) <= width

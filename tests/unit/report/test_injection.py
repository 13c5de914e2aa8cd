"""No name in a trace may reach a terminal, a page, a table or a spreadsheet as anything but text."""

import csv
import io
import json
import re

import pytest
import samples

from traceaudit.report import Page, formats_of, render
from traceaudit.report.markdown import code, escape

NASTY = {
    "reconcile": samples.nasty,
    "kernels": samples.nasty_kernels,
    "inspect": samples.nasty_inspection,
}
CASES = [(command, form) for command in NASTY for form in formats_of(command)]
OWN_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(("command", "form"), CASES)
def test_no_control_character_gets_through(command, form):
    text = render(command, form, NASTY[command]())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


@pytest.mark.parametrize("command", NASTY)
def test_colour_adds_only_our_own_styles(command):
    text = render(command, "table", NASTY[command](), Page(color=True))
    assert OWN_ESCAPES.search(text)
    assert OWN_ESCAPES.sub("", text) == render(command, "table", NASTY[command]())


@pytest.mark.parametrize("command", NASTY)
def test_terminal_shows_markup_as_it_is(command):
    text = render(command, "table", NASTY[command](), Page(width=120))
    assert "[red]x[/red]" in text


@pytest.mark.parametrize("command", NASTY)
def test_markdown_holds_no_html_mention_or_extra_cell(command):
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", render(command, "markdown", NASTY[command]()))
    assert "<script" not in outside
    assert "@team" not in outside
    tables = re.findall(r"(?:^\|.*\n)+", render(command, "markdown", NASTY[command]()), re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


@pytest.mark.parametrize("command", ["reconcile", "kernels"])
def test_csv_cells_are_no_formulas(command):
    rows = list(csv.reader(io.StringIO(render(command, "csv", NASTY[command]()))))
    assert len({len(row) for row in rows}) == 1
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)


def test_csv_keeps_negative_numbers_and_disarms_names():
    rows = render("kernels", "csv", samples.kernel_report(samples.kernel_row("=cmd()|' /C calc'!A0")))
    assert "'=cmd()" in rows


@pytest.mark.parametrize("command", NASTY)
def test_json_keeps_names_as_they_are(command):
    text = render(command, "json", NASTY[command]())
    assert text.isascii()
    assert samples.NASTY in json.dumps(json.loads(text), ensure_ascii=False).encode().decode("unicode_escape") or (
        samples.NASTY in _strings(json.loads(text))
    )


def test_lone_surrogates_do_not_break_a_report():
    report = samples.kernel_report(samples.kernel_row("bad \ud800 name"), path="\udcff.json")
    for form in formats_of("kernels"):
        render("kernels", form, report).encode("utf-8")


@pytest.mark.parametrize("text", ["*a*", "_a_", "[a](http://b)", "#12", "~~a~~", "a | b", "$x$", "`a`", "a_b"])
def test_markdown_escapes(text):
    shown = re.sub(r"\\([\\`*_\[\]#|~$])", r"\1", escape(text)).replace("&#8288;", "")
    assert shown == text


@pytest.mark.parametrize("text", ["`", "``a`", "a", "", "|", "`|`"])
def test_code_spans_close(text):
    span = code(text)
    fence = re.match("`+", span).group()
    assert span.endswith(fence)
    inner = span[len(fence) : -len(fence)]
    assert fence not in inner.replace(fence + "`", "") or len(fence) == 1


def _strings(value):
    if isinstance(value, dict):
        return {string for pair in value.items() for item in pair for string in _strings(item)}
    if isinstance(value, list):
        return {string for item in value for string in _strings(item)}
    return {value} if isinstance(value, str) else set()

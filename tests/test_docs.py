"""The documentation says what the program does: options, fields, codes, and reports as they are printed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import traceaudit
from traceaudit.cli.main import COMMANDS, application
from traceaudit.model.findings import CODES
from traceaudit.report.csvtable import KERNEL_COLUMNS, STEP_COLUMNS
from traceaudit.report.gaps_csv import COLUMNS as GAP_COLUMNS

PACKAGE = Path(traceaudit.__file__).parent
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SHOWN = re.compile(
    r"(?P<before>```console\n\$ (?:pip install \. && )?traceaudit (?P<args>[^\n]* ?traces/[^\n]*)\n```\n\n```text\n)"
    r"(?P<report>.*?)```\n",
    re.DOTALL,
)

each_command = pytest.mark.parametrize("command", COMMANDS)


def test_each_finding_code_is_documented():
    text = (DOCS / "findings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### `(\w+)`$", text, re.MULTILINE)) == set(CODES)


@each_command
def test_each_option_is_documented_and_nothing_else(command):
    group = typer.main.get_command(application())
    options = {
        name for parameter in group.commands[command].params for name in parameter.opts if name.startswith("--")
    } | {"--help"}
    page = (DOCS / "commands" / f"{command}.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(--[\w-]+)", page, re.MULTILINE))
    assert rows == options


@pytest.mark.parametrize(
    ("command", "columns"), [("reconcile", STEP_COLUMNS), ("kernels", KERNEL_COLUMNS), ("gaps", GAP_COLUMNS)]
)
def test_each_column_of_a_table_is_documented(command, columns):
    page = (DOCS / "commands" / f"{command}.md").read_text(encoding="utf-8")
    section = page.partition("## CSV\n")[2].partition("\n## ")[0]
    named = [name for name in re.findall(r"`([a-z0-9_]+)`", section) if name in columns]
    assert sorted(named) == sorted(columns)


@each_command
def test_each_field_of_the_document_is_documented(command):
    schema = json.loads((PACKAGE / "report" / "schemas" / f"{command}.schema.json").read_text(encoding="utf-8"))
    page = (DOCS / "commands" / f"{command}.md").read_text(encoding="utf-8")
    documented = {name for code in re.findall(r"`([\w.\[\]]+)`", page) for name in re.findall(r"\w+", code)}
    assert set(field_names(schema)) - documented == set()


def field_names(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from field_names(child)


def shown_reports():
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        for match in SHOWN.finditer(path.read_text(encoding="utf-8")):
            name = f"{path.relative_to(ROOT)}: {match['args']}"
            yield pytest.param(path, match["args"], match["report"], id=name)


@pytest.mark.parametrize(("path", "args", "shown"), list(shown_reports()))
def test_each_report_is_shown_as_it_is_printed(path, args, shown, request):
    program = [sys.executable, "-m", "traceaudit", *args.split()]
    environment = {**os.environ, "COLUMNS": "100", "PYTHONUTF8": "1"}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=True)
    if request.config.getoption("--update-golden"):
        text = path.read_text(encoding="utf-8")

        def printed(match):
            return f"{match['before']}{done.stdout}```\n" if match["args"] == args else match[0]

        path.write_text(SHOWN.sub(printed, text), encoding="utf-8")
    else:
        assert shown == done.stdout


def test_the_readme_shows_a_report():
    assert SHOWN.search((ROOT / "README.md").read_text(encoding="utf-8"))

"""Every renderer on results built by hand, at fixed width and without colour."""

import json
from importlib.resources import files

import jsonschema
import pytest
import samples

from traceaudit.report import Page, formats_of, render

RESULTS = {
    "reconcile": ["graph_decode", "eager_dilated", "unreliable", "wall_below_busy", "ranks", "coarse", "nasty"],
    "kernels": ["kernel_report", "nasty_kernels", "rated_kernels"],
    "inspect": ["inspection_with_findings", "nasty_inspection"],
}
ENDINGS = {"table": "txt", "json": "json", "markdown": "md", "csv": "csv"}
CASES = [(command, name, form) for command, names in RESULTS.items() for name in names for form in formats_of(command)]


@pytest.mark.parametrize(("command", "name", "form"), CASES)
def test_report_is_as_expected(golden, command, name, form):
    text = render(command, form, getattr(samples, name)(), Page(width=100))
    golden(f"{command}-{name}.{ENDINGS[form]}", text)


@pytest.mark.parametrize(("command", "name"), [(command, name) for command, name, form in CASES if form == "json"])
def test_json_follows_its_published_schema(command, name):
    schema = json.loads(files("traceaudit.report").joinpath(f"schemas/{command}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(render(command, "json", getattr(samples, name)())))


@pytest.mark.parametrize("width", [72, 100, 120])
@pytest.mark.parametrize(("command", "name"), [(command, name) for command, name, form in CASES if form == "table"])
def test_no_line_is_wider_than_the_page(command, name, width):
    lines = render(command, "table", getattr(samples, name)(), Page(width=width)).splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line.endswith((" ", "█…")) for line in lines)

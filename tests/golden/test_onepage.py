"""The audit on one page, as it is printed."""

import json
from importlib.resources import files

import founding
import jsonschema
import pytest

from traceaudit.cli.main import main

CASE = [
    *("reconcile", "decode.json", "--server-log", "server.log", "--tokens-per-second", "28", "--concurrency", "16"),
    *("--model", "deepseek-v4-flash", "--tp", "4", "--quiet", "--format"),
]
ENDINGS = {"table": "txt", "json": "json", "markdown": "md", "csv": "csv"}
MOST_LINES, WIDTH = 62, 100


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys):
    """Print the founding case's page."""
    founding.write_trace(tmp_path)
    founding.write_log(tmp_path)
    monkeypatch.chdir(tmp_path)

    def call(form, width=WIDTH):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main([*CASE, form]) == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("form", ENDINGS)
def test_page_is_as_expected(golden, printed, form):
    golden(f"onepage-founding.{ENDINGS[form]}", printed(form))


@pytest.mark.parametrize("width", [72, 100, 120])
def test_page_fits_its_width(printed, width):
    assert max(map(len, printed("table", width).splitlines())) <= width


def test_page_is_one_page(printed):
    assert len(printed("table").splitlines()) <= MOST_LINES


def test_json_follows_its_published_schema(printed):
    schema = json.loads(files("traceaudit.report").joinpath("schemas/reconcile.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(printed("json")))


def test_page_ends_with_the_decision(printed):
    tail = printed("table").partition("\nDecision")[2]
    assert tail.lstrip().startswith("1. Take get_next_batch_to_run off the step's path")


def test_same_input_gives_the_same_page(printed):
    assert printed("table") == printed("table")

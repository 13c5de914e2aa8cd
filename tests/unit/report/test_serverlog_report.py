"""Reports of `serverlog`: JSON by its schema, tables and Markdown that show the deciding lines and obey nothing."""

import json
import re
from importlib.resources import files

import jsonschema
import pytest
import samples
import serverlogs

from traceaudit.report.registry import Page
from traceaudit.report.serverlog_json import serverlog as as_json
from traceaudit.report.serverlog_markdown import serverlog as as_markdown
from traceaudit.report.serverlog_table import serverlog as as_table


def story(tmp_path, *, expected=16):
    lines = [serverlogs.decode(round(11.43 * n), 8, 28.0, queue=8, graph=n > 3) for n in range(6)]
    return serverlogs.report(tmp_path, *lines, serverlogs.decode(70, 2, 7.0), expected=expected)


def many(tmp_path):
    lines = [serverlogs.decode(2 * n, 8, 160, ranks=f" DP{rank} TP{rank}") for n in range(4) for rank in range(70)]
    later = [serverlogs.decode(1000 + 2 * n, 4, 80, ranks=" DP0 TP0") for n in range(3)]
    return serverlogs.report(tmp_path, *lines, *later)


@pytest.mark.parametrize("build", [story, many])
def test_json_follows_its_schema(tmp_path, build):
    schema = json.loads((files("traceaudit.report") / "schemas" / "serverlog.schema.json").read_text())
    document = json.loads(as_json(build(tmp_path)))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert set(document) >= set(schema["required"])


def test_json_of_the_founding_case(tmp_path):
    document = json.loads(as_json(story(tmp_path)))
    (engine,) = document["engines"]
    assert (document["engine"], document["expected"], document["implied_step_ns"]) == ("sglang", 16, 285_714_286)
    assert (engine["id"], engine["steady_batch"], engine["limit"]) == ("0", 8, "server_cap")
    assert engine["decided_by"]["number"] == 2
    assert [finding["code"] for finding in document["findings"]] == ["batch_mismatch"]


def test_the_table_shows_what_decides(tmp_path):
    text = as_table(story(tmp_path))
    assert "BATCH 8, NOT 16  1 engine, 28 tokens/s, step 286 ms" in text
    for part in ("batch_mismatch", "#running-req: 8", "16 running / 28 tokens/s", "first line after idle", "drain"):
        assert part in text
    assert "\x1b" not in text


def test_the_table_fits_the_page(tmp_path):
    for width in (72, 120):
        for report in (story(tmp_path), many(tmp_path)):
            assert max(map(len, as_table(report, Page(width=width)).splitlines())) <= width


def test_long_lists_are_cut_and_say_so(tmp_path):
    text = as_table(many(tmp_path))
    assert "6 more engines; --format json lists them" in text
    assert "Loads  2, with idle time between them" in text


def test_an_expected_batch_that_ran(tmp_path):
    assert "BATCH 8, as expected (8)" in as_table(story(tmp_path, expected=8))


def test_markdown(tmp_path):
    text = as_markdown(story(tmp_path))
    assert "| 0 | 8 | 8 to 8 | 8 | 8 |" in text
    assert "| 571 ms | no | expected batch over rate | 16 running / 28 tokens/s |" in text


def test_nothing_of_the_log_is_obeyed(tmp_path):
    nasty = samples.NASTY.replace("\n", " ")
    line = f"@evil<b> | {serverlogs.decode(0, 8, 28)} {nasty} <img src=x> @team"
    report = serverlogs.report(tmp_path, line, expected=16)
    assert "\x1b" not in as_table(report) + as_json(report) + as_markdown(report)
    marked = as_markdown(report)
    # within code spans nothing is taken as HTML or as a mention
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", marked)
    assert "<img" not in outside
    assert "@team" not in outside

"""Kernels have the same short names in every report, different for different kernels; JSON keeps the full ones."""

import json
import re
from pathlib import Path

import pytest

from traceaudit.cli.main import main

TRACES = Path(__file__).parents[2] / "traces"
DENSE = str(TRACES / "transformers" / "dense.json.gz")
MOE = str(TRACES / "transformers" / "moe.json.gz")
FULL = re.compile(r"void at::native|c10::|_ZN\d")


@pytest.fixture
def report(capsys, monkeypatch):
    def run(*args, columns="80"):
        monkeypatch.setenv("COLUMNS", columns)
        main([*args])
        return capsys.readouterr().out

    return run


def short_names(report, path):
    rows = json.loads(report("kernels", path, "-f", "json"))["devices"][0]["kernels"]
    return {row["name"]: row["short_name"] for row in rows}


def test_a_gap_names_both_of_its_ends(report):
    table = report("gaps", DENSE).split("Gaps  ")[1].split("  no room for")[0]
    rows = table.splitlines()[2:]
    ends = [re.split(r"\s{2,}(?=→ )", row) for row in rows]
    assert len(rows) == 12
    assert all(len(parts) == 2 for parts in ends)
    assert len({re.sub(r"^[\d.,?%\s]+", "", row) for row in rows}) == 12


def test_gaps_have_the_names_of_kernels(report):
    names = short_names(report, DENSE)
    row = json.loads(report("gaps", DENSE, "-f", "json"))["devices"][0]["gaps"][0]
    assert FULL.search(row["before"])
    text = report("gaps", DENSE, "-f", "markdown")
    assert f"`{names[row['before']]} → {names[row['after']]}`" in text
    assert not FULL.search(text)
    assert max(map(len, text.splitlines())) < 300


def test_gains_have_the_names_of_kernels(report):
    names = short_names(report, DENSE)
    gains = json.loads(report("whatif", DENSE, "-f", "json"))["devices"][0]
    assert "short_names" not in gains
    text, markdown = report("whatif", DENSE, columns="120"), report("whatif", DENSE, "-f", "markdown")
    for gain in gains["kernels"]:
        assert f"`{names[gain['name']]}`" in markdown
    assert not FULL.search(text + markdown)


def test_a_comparison_folds_long_lists_and_has_short_names(report):
    """A dense and a sparse model: 17 kernels make place for 37."""
    text = report("diff", DENSE, MOE, "--allow", "all")
    lines = text.splitlines()
    assert next(number for number, line in enumerate(lines) if line.startswith("Kernels")) < 20
    assert "split: CatArrayBatchedCopy + nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT + 15 more -> " in " ".join(text.split())
    assert "GemmUniversal<GroupProblemShape> + CatArrayBatchedCopy + 35 more:" in " ".join(text.split())
    assert not FULL.search(text + report("diff", DENSE, MOE, "--allow", "all", "-f", "markdown"))
    kernels = json.loads(report("diff", DENSE, MOE, "--allow", "all", "-f", "json"))["kernels"]
    assert any(FULL.search(kernel["name"]) for kernel in kernels)

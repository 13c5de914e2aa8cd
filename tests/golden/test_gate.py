"""The gate on real runs that none of its constants was fitted to: a third card, a process each."""

import itertools
import re
from pathlib import Path

import pytest

from traceaudit.audit.comparison import SideTraces, compare, read_side
from traceaudit.model.budget import Budget
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.runs import Side

RUNS = Path(__file__).parents[2] / "traces" / "again"
SEEDED = re.compile("decode_attention_kernel")


@pytest.fixture(scope="module")
def triples():
    """Return the runs of a series in threes, without overlap."""

    def read(series):
        paths = sorted(str(path) for path in RUNS.glob(f"{series}-*.json.gz"))
        runs = [read_side("run", [path], ReconcileOptions()).side.runs[0] for path in paths]
        return [tuple(runs[at : at + 3]) for at in range(0, len(runs) - 2, 3)]

    return read


def judged(base, head):
    return compare(SideTraces(Side.of("base", base)), SideTraces(Side.of("head", head)), Budget())


@pytest.mark.parametrize(("series", "sets"), [("graph-same", 4), ("eager-same", 2)])
def test_identical_code_never_fails(triples, series, sets):
    drawn = triples(series)
    assert len(drawn) == sets
    for base, head in itertools.permutations(drawn, 2):
        assert str(judged(base, head).verdict) in {"pass", "inconclusive"}


def test_five_percent_of_a_kernel_of_an_eighth_of_the_step_fail_by_its_name(triples):
    (slower,) = triples("graph-slower-5")
    for base in triples("graph-same"):
        result = judged(base, slower)
        assert str(result.verdict) == "fail"
        assert [bool(SEEDED.search(row.name)) for row in result.diff.kernels if row.violates] == [True]


def test_three_percent_never_pass(triples):
    """It is 2.8 % on that card and the limit 2 %: three runs a side see it, and do not always judge it."""
    for base, head in itertools.product(triples("graph-same"), triples("graph-slower-3")):
        result = judged(base, head)
        assert str(result.verdict) in {"fail", "inconclusive"}
        named = [row.name for row in result.diff.kernels if row.violates or row.suspects]
        assert any(SEEDED.search(name) for name in named)

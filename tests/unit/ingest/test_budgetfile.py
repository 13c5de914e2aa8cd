import re

import pytest
from comparisons import kernel, run, side

from traceaudit.analyses.diff import diff
from traceaudit.errors import ConfigError
from traceaudit.ingest.budgetfile import parse_budget, read_budget
from traceaudit.model.budget import (
    DEFAULT_LIMITS,
    Budget,
    FloorRule,
    KernelRule,
    LaunchRule,
    Limits,
    MeasureRule,
    ShareRule,
    propose,
)
from traceaudit.model.findings import Verdict
from traceaudit.report.budget_toml import budget_toml

FULL = """\
# everything that a budget can say
[limits]
relative = 0.03
absolute_us = 2.5
step_share = 0.002

[gate]
confidence = 0.999
hidden = 0
hidden_step_share = 0.02
min_runs = 3
completeness = "complete"
allow = ["context", "batch"]

[[kernel]]
match = "flash_fwd"
relative = 0.05
max_us = 100
max_launches = 24

[[kernel]]
match = '''
^fill'''
ignore = true

[total]
max_us = 1500
[account.idle_host]
max_share = 0.1
absolute_us = 5
[wall]
relative = 0.05

[launches]
max = 500
increase = 0

[unaccounted]
max_share = 0.02

[floor]
ms = 0.4
min_share = 0.3
"""


def test_everything_that_a_budget_can_say():
    budget = parse_budget(FULL, "b.toml")
    assert budget.limits == Limits(0.03, 2500.0, 0.002)
    assert (budget.confidence, budget.hidden_frac, budget.hidden_step_frac) == (0.999, 0.0, 0.02)
    assert (budget.min_runs, budget.require) == (3, Verdict.COMPLETE)
    assert budget.allow == {"context", "batch"}
    assert budget.kernels == (
        KernelRule("kernel[0]", 15, re.compile("flash_fwd"), Limits(relative=0.05), 100_000.0, 24),
        KernelRule("kernel[1]", 21, re.compile("^fill"), ignore=True),
    )
    assert budget.measures == (
        MeasureRule("total", 26, "op_time", max_ns=1_500_000.0),
        MeasureRule("wall", 31, "wall", Limits(relative=0.05)),
        MeasureRule("account.idle_host", 28, "idle_host", Limits(absolute_ns=5000.0), max_frac=0.1),
    )
    assert budget.launches == (LaunchRule("launches", 34, 500, 0),)
    assert budget.unaccounted == (ShareRule("unaccounted", 38, 0.02),)
    assert budget.floors == (FloorRule("floor", 41, 400_000.0, 0.3),)


def test_an_empty_budget_is_the_default():
    assert parse_budget("", "b.toml") == Budget(source="b.toml")
    assert parse_budget("", "b.toml").limits == DEFAULT_LIMITS


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[limit]\nrelative = 1", 1, "unknown key 'limit'"),
        ("\n[limits]\nrelativ = 1", 3, "unknown key 'relativ'"),
        ('[limits]\n\nrelative = "2 %"', 3, "relative must be a number"),
        ("[limits]\nrelative = true", 2, "relative must be a number"),
        ("[limits]\nrelative = nan", 2, "relative must be a number"),
        ("[limits]\nrelative = -0.1", 2, "must lie between 0"),
        ("limits = 3", 1, "limits must be a table"),
        ("limits = { relative = -1 }", 1, "must lie between 0"),
        ('[gate]\ncompleteness = "good"', 2, "completeness must be one of"),
        ('[gate]\nallow = ["size"]', 2, "allow must be a list"),
        ("[gate]\nmin_runs = 0", 2, "min_runs must be a whole number of 1"),
        ("[gate]\nmin_runs = 2.5", 2, "min_runs must be a whole number"),
        ("[gate]\nconfidence = 1", 2, "must lie between 0.5"),
        ("[[kernel]]\nmax_us = 3", 1, "needs match"),
        ("[[kernel]]\nmatch = 'a'\nmax_us = 3\n[[kernel]]\nmatch = '('\nignore = true", 5, "no regular expression"),
        ("[[kernel]]\nmatch = 'a'", 1, "without a limit"),
        ("[[kernel]]\nmatch = 'a'\nignore = 1", 3, "ignore must be true or false"),
        ("[[kernel]]\nmatch = 'a'\nmax_launches = -1", 3, "max_launches must be a whole number"),
        ("[kernel]\nmatch = 'a'", 1, "kernel must be a list of tables"),
        ("[account.idle]\nmax_us = 1", 1, "unknown key 'idle'"),
        ("[account]\nidle_host = 1", 2, "account.idle_host must be a table"),
        ("[total]\nmax = 1", 2, "unknown key 'max'"),
        ("# nothing\n[total]", 2, "[total] has no limit"),
        ("[floor]\nms = 1", 1, "[floor] needs ms and min_share"),
        ("[limits]\nrelative = ", 2, "not valid TOML"),
        ("[limits]\n[limits]", 2, "not valid TOML"),
    ],
)
def test_mistakes_are_named_with_their_line(text, line, message):
    with pytest.raises(ConfigError) as caught:
        parse_budget(text, "b.toml")
    assert message in caught.value.message
    assert caught.value.where == f"b.toml:{line}"


def test_a_misspelt_key_gets_a_suggestion():
    with pytest.raises(ConfigError) as caught:
        parse_budget("[limits]\nrelativ = 1", "b.toml")
    assert caught.value.hint == "did you mean 'relative'?"


@pytest.mark.parametrize("data", [b"\xff\xfe", b"#" * ((1 << 20) + 1)])
def test_what_is_no_text_or_far_too_long_is_refused(tmp_path, data):
    path = tmp_path / "b.toml"
    path.write_bytes(data)
    with pytest.raises(ConfigError):
        read_budget(str(path))


def test_a_missing_budget_says_how_to_get_one(tmp_path):
    with pytest.raises(ConfigError) as caught:
        read_budget(str(tmp_path / "none.toml"))
    assert "--init" in caught.value.hint


def test_a_written_budget_reads_back_as_itself():
    budget = parse_budget(FULL, "b.toml")
    again = parse_budget(budget_toml(budget), "b.toml")

    def without_lines(rules):
        return [[getattr(rule, name) for name in rule.__slots__ if name != "line"] for rule in rules]

    for name in ("kernels", "measures", "launches", "unaccounted", "floors"):
        assert without_lines(getattr(again, name)) == without_lines(getattr(budget, name))
    assert (again.limits, again.allow, again.require) == (budget.limits, budget.allow, budget.require)


@pytest.mark.parametrize("name", ["f<'a'>", 'f<"b">', "tab\there", "é\U0001f600", "back\\slash", "del\x7f"])
def test_any_kernel_name_can_stand_in_a_budget(name):
    one = side(run(kernel(name, 100)))
    budget = parse_budget(budget_toml(propose(diff(one, one))), "b.toml")
    assert budget.kernels[0].match.search(name)

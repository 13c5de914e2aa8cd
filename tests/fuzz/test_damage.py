"""Damaged traces: only a refusal or a report may come out, and no wrong ledger without a finding.

Thousands of inputs from fixed seeds, and some hundred that hypothesis chooses and makes small when they fail. The
recorded run of hundreds of thousands is `record.py`; what it found is in `test_found.py`, and its figures are in
docs/robustness.md.
"""

from random import Random

import pytest
from fuzz.bases import SHAPES
from fuzz.engine import BASES, KINDS, base_of, outcome_of
from fuzz.oracle import Failure, judge, run
from fuzz.rows import DAMAGES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

INPUTS_A_KIND = 50
RENDERED_EVERY = 25


@pytest.mark.parametrize("kind", KINDS)
def test_fixed_seeds(kind):
    outcomes = [
        outcome_of(kind, Random(f"{kind} ci {seed}"), rendered=seed % RENDERED_EVERY == 0)
        for seed in range(INPUTS_A_KIND)
    ]
    assert set(outcomes) - {"inapplicable"}, "no trace can be damaged so"


@given(kind=st.sampled_from(sorted(KINDS)), rng=st.randoms(use_true_random=False))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_chosen_inputs(kind, rng):
    outcome_of(kind, rng)


@given(data=st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes(data):
    run(data)


@given(
    text=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "traceEvents",
                        "ph",
                        "cat",
                        "name",
                        "ts",
                        "dur",
                        "args",
                        "correlation",
                        "pid",
                        "tid",
                        "X",
                        "kernel",
                    ]
                )
                | st.text(),
                inner,
            )
        ),
    )
)
@settings(max_examples=200)
def test_any_json(text):
    import json

    run(json.dumps(text).encode())
    run(json.dumps({"traceEvents": text, "schemaVersion": 1}).encode())


@pytest.mark.parametrize("shape", SHAPES)
def test_undamaged_traces_are_complete(shape):
    for number in range(BASES):
        assert not base_of(shape, number, "kineto-2.6").report.completeness.findings


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_that_is_not_noticed_says_why(name):
    damage = DAMAGES[name]
    assert not (damage.codes and damage.reason)


def test_the_oracle_can_fail():
    """A report of another trace, without a finding, is a wrong ledger; with a finding of the wrong code as well."""
    first, other = base_of("eager", 0, "kineto-2.6"), base_of("eager", 1, "kineto-2.6")
    with pytest.raises(Failure, match="no finding"):
        judge(run(other.data), first.report, {"launch_without_op"})
    with pytest.raises(Failure, match="no finding"):
        judge(run(first.data + first.data), first.report, {"launch_without_op"}, always=True)
    assert judge(run(first.data), first.report, ()) == "unchanged"
    assert judge(run(b"no trace"), first.report, ()) == "refused"

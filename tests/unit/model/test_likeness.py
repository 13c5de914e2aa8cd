import pytest
from comparisons import decode, side

from traceaudit.model.findings import Severity
from traceaudit.model.likeness import facts_of, unlike, unlike_findings


@pytest.mark.parametrize(
    ("fact", "one", "other", "allow"),
    [
        ("device", "NVIDIA H100", "NVIDIA H200", "device"),
        ("dtype", "bf16", "fp8", "dtype"),
        ("batch", 16, 32, "batch"),
        ("context", 1024, 2048, "context"),
        ("graph_mode", "eager", "graph", "graph"),
        ("step_kind", "decode", "prefill", "step_kind"),
    ],
)
def test_every_fact_must_agree_unless_allowed(fact, one, other, allow):
    found = unlike(side(decode(**{fact: one})), side(decode(**{fact: other})))
    assert [(item.fact, item.base, item.head, item.side) for item in found] == [(allow, str(one), str(other), None)]
    for permitted, severity in ((frozenset(), "error"), ({allow}, "warning"), ({"all"}, "warning")):
        (finding,) = unlike_findings(found, frozenset(permitted))
        assert (finding.code, str(finding.severity)) == ("unlike_runs", severity)
        assert str(one) in finding.message
        assert str(other) in finding.message


def test_what_is_not_known_agrees_with_anything():
    assert unlike(side(decode(batch=None)), side(decode(batch=16))) == ()


def test_runs_of_one_side_must_agree_among_themselves():
    mixed = side(decode(batch=16), decode(batch=32))
    found = unlike(mixed, side(decode(batch=16)))
    assert [(item.fact, item.side) for item in found] == [("batch", "base"), ("batch", None)]
    assert "base side" in unlike_findings(found, frozenset())[0].message


def test_files_of_several_ranks_are_no_repeated_runs():
    (item,) = unlike(side(decode(rank=0), decode(rank=1)), side(decode()))
    (finding,) = unlike_findings([item], frozenset())
    assert finding.severity is Severity.ERROR
    assert "--rank" in finding.hint


def test_facts_are_listed_by_name():
    runs = (decode(batch=16, graph_mode="graph"), decode(batch=8, graph_mode="graph"))
    assert facts_of(runs) == {"device": "NVIDIA H200", "batch": "16, 8", "graph": "graph"}

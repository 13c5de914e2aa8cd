"""Whether two sides ran the same thing: device, data type, batch, context, graph mode, step kind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traceaudit.model.findings import Finding, Severity
from traceaudit.model.runs import RunSummary, Side

__all__ = ["FACTS", "Unlike", "facts_of", "unlike", "unlike_findings"]

FACTS = ("device", "dtype", "batch", "context", "graph", "step_kind")
"""What must agree, by the name that allows it to differ."""

_TEXTS = {
    "device": "device",
    "dtype": "data type",
    "batch": "batch",
    "context": "context",
    "graph": "graph mode",
    "step_kind": "step kind",
    "rank": "rank",
}


@dataclass(frozen=True, slots=True)
class Unlike:
    """A fact that differs; `side` is set when the runs of that side disagree among themselves."""

    fact: str
    base: str
    head: str
    side: str | None = None


def facts_of(runs: Sequence[RunSummary]) -> dict[str, str]:
    """Return the known facts of a side's runs; different values are joined by a comma."""
    found: dict[str, str] = {}
    for fact in FACTS:
        values = _values(runs, fact)
        if values:
            found[fact] = ", ".join(values)
    return found


def unlike(base: Side, head: Side) -> tuple[Unlike, ...]:
    """Return the facts that differ between the sides or within one; what a side does not tell agrees with anything."""
    found: list[Unlike] = []
    for fact in FACTS:
        in_base, in_head = _values(base.runs, fact), _values(head.runs, fact)
        for side, values in (("base", in_base), ("head", in_head)):
            if len(values) > 1:
                found.append(Unlike(fact, ", ".join(values), ", ".join(values), side))
        if in_base and in_head and in_base != in_head:
            found.append(Unlike(fact, ", ".join(in_base), ", ".join(in_head)))
    for name, runs in (("base", base.runs), ("head", head.runs)):
        ranks = sorted({run.rank for run in runs})
        if len(ranks) > 1:
            listed = ", ".join(str(rank) for rank in ranks)
            found.append(Unlike("rank", listed, listed, name))
    return tuple(found)


def unlike_findings(found: Iterable[Unlike], allowed: frozenset[str]) -> tuple[Finding, ...]:
    """Say what differs: an error where that was not allowed, a note where it was."""
    return tuple(_finding(item, allowed) for item in found)


def _finding(item: Unlike, allowed: frozenset[str]) -> Finding:
    what = _TEXTS[item.fact]
    if item.side is None:
        message = f"the sides differ in {what}: {item.base} on the base side, {item.head} on the head side"
    else:
        message = f"the runs of the {item.side} side differ in {what}: {item.base}"
    if item.fact in allowed or "all" in allowed:
        return Finding("unlike_runs", Severity.WARNING, message, "compared all the same, as allowed")
    hint = (
        "a side's files are repeated runs of one rank; --rank chooses one"
        if item.fact == "rank"
        else f"record both sides alike, or compare all the same with --allow {item.fact}"
    )
    return Finding("unlike_runs", Severity.ERROR, message, hint)


def _values(runs: Sequence[RunSummary], fact: str) -> tuple[str, ...]:
    attribute = {"graph": "graph_mode"}.get(fact, fact)
    return tuple(sorted({str(value) for run in runs if (value := getattr(run.facts, attribute)) is not None}))

"""Clocks that contradict the collectives."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceaudit.analyses.ranks.matching import CLOCK_AGREEMENT_NS, Match, Member, ms
from traceaudit.model.findings import Finding, Severity

__all__ = ["Clocks", "compare_clocks", "meeting_of"]


@dataclass(frozen=True, slots=True)
class Clocks:
    """What the collectives say about the members' clocks.

    Attributes
    ----------
    ahead_ns
        By how much the clock of a member is ahead, for members whose clocks contradict each other.
    mismatched
        Sets of members whose collectives are not the same ones: no offset makes them meet.
    findings
        ``rank_clock_offset``.
    """

    ahead_ns: Mapping[int, int]
    mismatched: frozenset[tuple[int, ...]]
    findings: tuple[Finding, ...]


def compare_clocks(members: Sequence[Member], matches: Sequence[Match]) -> Clocks:
    """Find clocks that contradict the collectives: one ends somewhere before it has begun everywhere.

    Larger sets of members go first, and speak for the smaller ones inside them.
    """
    ahead_ns: dict[int, int] = {}
    mismatched: set[tuple[int, ...]] = set()
    findings: list[Finding] = []
    for group in _groups(match for match in (_on_one_clock(match, members) for match in matches) if match is not None):
        present = group[0].members
        if ahead_ns.keys() >= set(present):
            continue
        ahead = _ends_ahead(group)
        before, after = _contradictions(group, {}), _contradictions(group, ahead)
        if before and after * 2 > before:
            mismatched.add(present)
        elif before:
            ahead_ns.update(ahead)
            findings += _wrong_clocks(members, ahead, before)
    return Clocks(ahead_ns, frozenset(mismatched), tuple(findings))


def meeting_of(match: Match, members: Sequence[Member], clocks: Clocks) -> Match | None:
    """Keep the collectives in which members surely met.

    With metadata that is every one, unless clocks say that they are not the same ones. Kernels without it, as in
    replayed graphs, do not say which ranks they connect: they met if their ends agree.
    """
    if match.call.group is not None:
        known = {index for index in match.members if members[index].origin_ns is not None}
        return None if any(known.issuperset(apart) for apart in clocks.mismatched) else match
    timed = _on_one_clock(match, members)
    if timed is None or timed.members != match.members:
        return None
    shift = np.array([clocks.ahead_ns.get(index, 0) for index in match.members], np.int64)
    together = np.ptp(timed.end_ns - shift, axis=1) <= CLOCK_AGREEMENT_NS
    if not together.any():
        return None
    return Match(match.call, match.members, match.start_ns[together], match.end_ns[together])


def _on_one_clock(match: Match, members: Sequence[Member]) -> Match | None:
    """Shift to Unix time; members without an origin make no statement about clocks."""
    columns = [column for column, index in enumerate(match.members) if members[index].origin_ns is not None]
    if len(columns) < 2:  # noqa: PLR2004  (a comparison takes two)
        return None
    kept = tuple(match.members[column] for column in columns)
    origins = np.array([members[index].origin_ns for index in kept], np.int64)
    return Match(match.call, kept, match.start_ns[:, columns] + origins, match.end_ns[:, columns] + origins)


def _groups(matches: Iterable[Match]) -> list[list[Match]]:
    """Collect matches whose members are the same, most members first."""
    groups: dict[tuple[int, ...], list[Match]] = {}
    for match in matches:
        groups.setdefault(match.members, []).append(match)
    return sorted(groups.values(), key=lambda group: -len(group[0].members))


def _ends_ahead(group: Sequence[Match]) -> dict[int, int]:
    """Return the median lead of each member's ends over those of the majority (over the first one's without one)."""
    ends = np.concatenate([match.end_ns for match in group])
    lead = {index: int(np.median(ends[:, column] - ends[:, 0])) for column, index in enumerate(group[0].members)}
    reference = int(np.median([lead[index] for index in _majority(lead)] or [0]))
    return {index: value - reference for index, value in lead.items()}


def _majority(lead: Mapping[int, int]) -> tuple[int, ...]:
    """Return the members, more than half of all, whose clocks agree; none if there is no such set."""
    best: tuple[int, ...] = ()
    for low in lead.values():
        agreeing = tuple(index for index, value in lead.items() if low <= value <= low + CLOCK_AGREEMENT_NS)
        best = max(best, agreeing, key=len)
    return best if len(best) * 2 > len(lead) else ()


def _contradictions(group: Sequence[Match], ahead: Mapping[int, int]) -> int:
    """Count collectives that end somewhere before they have begun everywhere, with clocks set back by `ahead`."""
    count = 0
    for match in group:
        shift = np.array([ahead.get(index, 0) for index in match.members], np.int64)
        count += int(((match.end_ns - shift).min(axis=1) < (match.start_ns - shift).max(axis=1)).sum())
    return count


def _wrong_clocks(members: Sequence[Member], ahead: Mapping[int, int], contradictions: int) -> Iterator[Finding]:
    evidence = f"collectives that end on one rank before they begin on another: {contradictions}"
    hint = "durations of these ranks can be compared, times cannot; captures of different moments look the same"
    majority = _majority(ahead)
    if not majority:
        ranks = ", ".join(str(members[index].rank) for index in ahead)
        spread = max(ahead.values()) - min(ahead.values())
        yield Finding(
            "rank_clock_offset",
            Severity.WARNING,
            f"clocks of ranks {ranks} differ by {ms(spread)}, and no majority tells which is right; {evidence}",
            hint=hint,
            count=contradictions,
            impact_ns=spread,
        )
        return
    for index, lead in ahead.items():
        if index not in majority and abs(lead) > CLOCK_AGREEMENT_NS:
            yield Finding(
                "rank_clock_offset",
                Severity.WARNING,
                f"the clock of rank {members[index].rank} is {ms(abs(lead))} {'ahead' if lead > 0 else 'behind'};"
                f" {evidence}",
                hint=hint,
                count=contradictions,
                impact_ns=abs(lead),
                rank=members[index].rank,
            )

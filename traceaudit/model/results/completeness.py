"""Whether the trace can be believed, and why."""

from dataclasses import dataclass
from typing import Self

from traceaudit.model.findings import CODES, Finding, Severity, Verdict, verdict_of

__all__ = [
    "Completeness",
]


@dataclass(frozen=True, slots=True)
class Completeness:
    """The verdict and the findings it follows from."""

    verdict: Verdict
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: tuple[Finding, ...]) -> Self:
        """Judge the findings and order them, worst first."""
        order = {"error": 0, "warning": 1, "info": 2}
        ranked = sorted(findings, key=lambda f: (order[f.severity], -(f.impact_ns or 0)))
        return cls(verdict_of(findings), tuple(ranked))

    def doubts(self, rank: int, device: int, *names: str) -> bool:
        """Tell whether one of these numbers of a device is doubtful: all are where the trace is unreliable."""
        return self.verdict is Verdict.UNRELIABLE or any(
            not CODES[finding.code].doubts.isdisjoint(names)
            for finding in self.findings
            if finding.severity is not Severity.INFO
            and finding.rank in {None, rank}
            and finding.device in {None, device}
        )

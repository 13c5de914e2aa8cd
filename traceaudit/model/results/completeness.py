"""Whether the trace can be believed, and why."""

from dataclasses import dataclass
from typing import Self

from traceaudit.model.findings import Finding, Verdict, verdict_of

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

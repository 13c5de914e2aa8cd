"""The JSON contract of ``diff`` and ``check``: times per step in ns, null for what is not known."""

import json
from dataclasses import fields
from typing import TYPE_CHECKING

from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.findings import Finding
    from traceaudit.model.noise import Effect
    from traceaudit.model.results.diff import CheckResult, GroupDiff, KernelDiff, Measure, Ruling, SideSummary

__all__ = ["SCHEMA_VERSION", "check", "diff"]

SCHEMA_VERSION = 1

Object = dict[str, object]


def diff(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a comparison."""
    return _document("diff", result)


def check(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write a judgement."""
    return _document("check", result)


def _document(command: str, result: "CheckResult") -> str:
    comparison = result.diff
    document: Object = {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "verdict": str(result.verdict),
        "base": _side(comparison.base),
        "head": _side(comparison.head),
        "comparable": comparison.comparable,
        "confidence": comparison.confidence,
        "tests": comparison.tests,
        "same_recordings": comparison.same_recordings,
        "step": _measure(comparison.step),
        "measures": [_measure(measure) for measure in comparison.measures],
        "launches": {"base": comparison.launches_base, "head": comparison.launches_head},
        "kernels": [_kernel(row) for row in comparison.kernels],
        "groups": [_group(row) for row in comparison.groups],
        "common_shift": None
        if comparison.common is None
        else {"factor": comparison.common.factor, "kernels": comparison.common.kernels},
        "budget": result.budget,
        "rulings": [_ruling(ruling) for ruling in result.rulings],
        "findings": [_finding(finding) for finding in result.completeness.findings],
    }
    # ASCII only: names may hold lone surrogates, and control characters that a terminal would obey.
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _side(side: "SideSummary") -> Object:
    return {
        "label": side.label,
        "sources": list(side.sources),
        "runs": side.runs,
        "steps": side.steps,
        "facts": dict(side.facts),
        "verdict": str(side.verdict),
        "unaccounted_frac": side.unaccounted_frac,
    }


def _effect(effect: "Effect") -> Object:
    return {
        "base_ns": effect.base_ns,
        "head_ns": effect.head_ns,
        "delta_ns": effect.delta_ns,
        "ratio": effect.ratio,
        "noise_ns": effect.noise_ns,
        "low_ns": effect.low_ns,
        "high_ns": effect.high_ns,
        "noise_by": {
            "launch_sd_ns": effect.launch_sd_ns,
            "step_sd_ns": effect.step_sd_ns,
            "run_sd_ns": effect.run_sd_ns,
        },
    }


def _measure(measure: "Measure") -> Object:
    return {
        "name": measure.name,
        **_effect(measure.effect),
        "noise_says_nothing": measure.noise_says_nothing,
        "judged": measure.judged,
        "reason": measure.reason,
        "violates": list(measure.violates),
        "suspects": list(measure.suspects),
    }


def _kernel(row: "KernelDiff") -> Object:
    return {
        "name": row.name,
        "base_name": row.base_name,
        "identity": row.identity,
        "kind": row.kind,
        "status": str(row.status),
        **_effect(row.effect),
        "launches_base": row.launches_base,
        "launches_head": row.launches_head,
        "changes": [{item.name: getattr(change, item.name) for item in fields(change)} for change in row.changes],
        "group": row.group,
        "launch_size": None
        if row.launch_size is None
        else {"unit": row.launch_size.unit, "least": row.launch_size.least, "most": row.launch_size.most},
        "violates": list(row.violates),
        "suspects": list(row.suspects),
    }


def _group(row: "GroupDiff") -> Object:
    return {
        "kind": row.kind,
        "base": list(row.base),
        "head": list(row.head),
        **_effect(row.effect),
        "violates": list(row.violates),
        "suspects": list(row.suspects),
    }


def _ruling(ruling: "Ruling") -> Object:
    return {
        "rule": ruling.rule,
        "line": ruling.line,
        "outcome": str(ruling.outcome),
        "message": ruling.message,
    }


def _finding(finding: "Finding") -> Object:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "hint": finding.hint,
        "count": finding.count,
        "impact_ns": finding.impact_ns,
        "rank": finding.rank,
        "device": finding.device,
        "examples": list(finding.examples),
    }

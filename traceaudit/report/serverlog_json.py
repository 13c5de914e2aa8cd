"""The JSON contract of ``serverlog``; fields may be added, none renamed."""

from typing import TYPE_CHECKING

from traceaudit.report.jsondoc import SCHEMA_VERSION, written
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.findings import Finding
    from traceaudit.model.results.serverlog import (
        EngineLog,
        LoadItem,
        Note,
        ServerReport,
        StepReading,
        Stretch,
    )
    from traceaudit.model.serverlines import LineRef, ServerSource

__all__ = ["reading_object", "server_object", "serverlog"]

Object = dict[str, object]


def serverlog(result: "ServerReport", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a server log's report."""
    return written({"schema_version": SCHEMA_VERSION, "command": "serverlog", **server_object(result)})


def server_object(result: "ServerReport") -> Object:
    """Describe what a server's log says."""
    return {
        "path": result.path,
        "files": [_file(source) for source in result.sources],
        "engine": str(result.software),
        "expected": result.expected,
        "steady_batch": result.steady_batch,
        "tokens_per_second": result.tokens_per_second,
        "accept_length": result.accept_length,
        "implied_step_ns": result.implied_step_ns,
        "engines": [_engine(engine) for engine in result.engines],
        "readings": [reading_object(reading) for reading in result.readings],
        "load": result.load,
        "loads": [_load(load) for load in result.loads],
        "findings": [_finding(finding) for finding in result.findings],
        "notes": [_note(note) for note in result.notes],
    }


def _file(source: "ServerSource") -> Object:
    return {
        "path": source.path,
        "lines": source.lines,
        "bytes_read": source.bytes_read,
        "cut_lines": source.cut_lines,
        "duplicates": source.duplicates,
        "damage": source.damage,
    }


def _engine(engine: "EngineLog") -> Object:
    return {
        "id": engine.id,
        "samples": engine.samples,
        "steady_samples": engine.steady_samples,
        "steady_batch": engine.steady_batch,
        "steady_min": engine.steady_min,
        "steady_max": engine.steady_max,
        "max_batch": engine.max_batch,
        "queue_median": engine.queue_median,
        "cache_frac": engine.cache_frac,
        "context_tokens": engine.context_tokens,
        "graph_false": engine.graph_false,
        "tokens_per_second": engine.tokens_per_second,
        "accept_length": engine.accept_length,
        "implied_step_ns": engine.implied_step_ns,
        "cap": engine.cap,
        "retracted": engine.retracted,
        "pieces": engine.pieces,
        "limit": str(engine.cause.limit),
        "limit_reason": engine.cause.reason,
        "limit_lines": [_line(line) for line in engine.cause.lines],
        "decided_by": None if engine.decided_by is None else _line(engine.decided_by),
        "stretches": [_stretch(stretch) for stretch in engine.stretches],
        "readings": [reading_object(reading) for reading in engine.readings],
    }


def _stretch(stretch: "Stretch") -> Object:
    return {
        "use": str(stretch.use),
        "samples": stretch.samples,
        "batch_min": stretch.batch_min,
        "batch_max": stretch.batch_max,
        "first": _place(stretch.first),
        "last": _place(stretch.last),
    }


def reading_object(reading: "StepReading") -> Object:
    """Describe a reading of the step time."""
    return {
        "kind": str(reading.kind),
        "step_ns": reading.step_ns,
        "error_ns": reading.error_ns,
        "arithmetic": reading.arithmetic,
        "holds": reading.holds,
        "reason": reading.reason,
        "line": None if reading.line is None else _line(reading.line),
    }


def _load(load: "LoadItem") -> Object:
    return {
        "index": load.index,
        "samples": load.samples,
        "steady_batch": load.steady_batch,
        "tokens_per_second": load.tokens_per_second,
        "first": _place(load.first),
        "last": _place(load.last),
    }


def _note(note: "Note") -> Object:
    return {"text": note.text, "lines": [_line(line) for line in note.lines]}


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


def _line(line: "LineRef") -> Object:
    return {"path": line.path, "number": line.number, "text": line.text}


def _place(line: "LineRef") -> Object:
    return {"path": line.path, "number": line.number}

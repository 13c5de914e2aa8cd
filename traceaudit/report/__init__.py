"""Results to text: terminal, JSON, Markdown and CSV. Nothing here computes a figure or reads a trace."""

from traceaudit.report.format import plain
from traceaudit.report.registry import Page, Result, formats_of, render

__all__ = ["Page", "Result", "formats_of", "plain", "render"]

"""Directives that take their content from the package, so that the pages cannot fall behind it."""

import tomllib
from dataclasses import fields
from inspect import isfunction
from pathlib import Path
from statistics import median

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from traceaudit import audit
from traceaudit.errors import ExitCode
from traceaudit.model.findings import CODES
from traceaudit.model.schema import TABLES

MANIFEST = Path(__file__).parents[2] / "traces" / "MANIFEST.toml"


class _Generated(SphinxDirective):
    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes("\n".join(self.lines()), allow_section_headings=True)


class SchemaTables(_Generated):
    """One table of columns for each table of a trace."""

    def lines(self) -> list[str]:
        lines: list[str] = []
        for table in TABLES:
            purpose = " ".join((table.__doc__ or "").split())
            lines += [f"## {table.title}", "", f"`{table.__name__}`. {purpose}", ""]
            lines += ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
            for item in fields(table):
                meaning, unit = item.metadata["meaning"], item.metadata["unit"]
                lines.append(f"| `{item.name}` | {item.metadata['dtype']} | {unit} | {meaning} |")
            lines.append("")
        return lines


class FindingTable(_Generated):
    """All finding codes, each with a link to its section."""

    def lines(self) -> list[str]:
        lines = ["| code | raised when | bears on the verdict |", "| --- | --- | --- |"]
        for name, code in CODES.items():
            lines.append(f"| [`{name}`](#{name}) | {code.meaning} | {'yes' if code.about_trace else 'no'} |")
        return lines


class RecordingTable(_Generated):
    """All recordings of the manifest, with the wall clock measured without the profiler."""

    def lines(self) -> list[str]:
        self.env.note_dependency(MANIFEST)
        lines = ["| file | what it is | wall per step, ms |", "| --- | --- | --- |"]
        for recording in tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["recording"]:
            repeats = recording["truth"]["wall_ns_per_step"]
            wall = " to ".join(f"{value / 1e6:.2f}" for value in (min(repeats), max(repeats)))
            lines.append(
                f"| `{recording['file']}` | {recording['description']} | {median(repeats) / 1e6:.2f} ({wall}) |"
            )
        return lines


class Questions(_Generated):
    """One function of `traceaudit.audit` for each command."""

    def lines(self) -> list[str]:
        functions = [name for name in audit.__all__ if isfunction(getattr(audit, name))]
        return ["```{eval-rst}", *(f".. autofunction:: traceaudit.audit.{name}" for name in functions), "```"]


class ExitCodeTable(_Generated):
    """All exit codes with the names they have in the library; the content gives a meaning for each, in order."""

    has_content = True

    def lines(self) -> list[str]:
        meanings = [line for line in self.content if line.strip()]
        if len(meanings) != len(ExitCode):
            raise self.error(f"{len(meanings)} meanings for {len(ExitCode)} exit codes")
        lines = ["| code | name | meaning |", "| --- | --- | --- |"]
        pairs = zip(ExitCode, meanings, strict=True)
        return lines + [f"| {code.value} | `{code.name}` | {meaning} |" for code, meaning in pairs]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives."""
    app.add_directive("schema-tables", SchemaTables)
    app.add_directive("finding-table", FindingTable)
    app.add_directive("recording-table", RecordingTable)
    app.add_directive("questions", Questions)
    app.add_directive("exit-code-table", ExitCodeTable)
    return {"parallel_read_safe": True}

import subprocess
import sys

import pytest
import samples

from traceaudit.errors import UsageError
from traceaudit.report import formats_of, render


def test_unknown_formats_are_refused():
    with pytest.raises(UsageError, match="inspect has no csv report"):
        render("inspect", "csv", samples.inspection())


def test_every_command_has_json_and_a_table():
    for command in ("reconcile", "kernels", "inspect"):
        assert {"table", "json", "markdown"} <= set(formats_of(command))


def test_json_needs_no_terminal_library_and_no_pandas():
    code = (
        "import sys; sys.path.insert(0, 'tests'); import samples; from traceaudit.report import render;"
        "render('reconcile', 'json', samples.graph_decode());"
        "sys.exit(bool({'rich', 'pandas', 'networkx', 'plotly', 'jinja2'} & set(sys.modules)))"
    )
    root = samples.__file__.rsplit("/tests/", 1)[0]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0

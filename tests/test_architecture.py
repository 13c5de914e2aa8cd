"""Rules of the code base that no linter knows."""

import ast
import hashlib
import importlib.metadata
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import traceaudit
from traceaudit import audit, ingest
from traceaudit.audit import reading
from traceaudit.cli.main import COMMANDS
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.trace import Trace

PACKAGE = Path(traceaudit.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 400
HEAVY = ("dask", "hta", "networkx", "pandas", "plotly", "torch")

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))


def installed_files() -> list[str]:
    try:
        files = importlib.metadata.files("traceaudit") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    names = [str(file) for file in files]
    if "traceaudit/__init__.py" not in names:
        pytest.skip("not installed from a wheel")
    return names


def test_tox_tests_the_installed_package():
    if "TOX_ENV_NAME" not in os.environ:
        pytest.skip("not under tox")
    assert "site-packages" in PACKAGE.parts


def test_wheel_says_that_it_is_typed():
    assert "traceaudit/py.typed" in installed_files()


def test_wheel_holds_the_schema_of_each_command():
    assert {f"traceaudit/report/schemas/{command}.schema.json" for command in COMMANDS} <= set(installed_files())


def test_wheel_holds_nothing_but_the_package():
    tops = {name.split("/")[0] for name in installed_files() if not name.startswith("..")}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"traceaudit"}


@each_module
def test_modules_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@each_module
def test_modules_list_their_public_names(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported = exports(tree)
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    assert defined <= set(exported)
    assert len(exported) == len(set(exported))


def test_public_names_exist():
    for name in traceaudit.__all__:
        assert hasattr(traceaudit, name)


def exports(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            return list(ast.literal_eval(node.value))
    return []


def test_reports_come_without_heavy_imports():
    code = (
        "import sys\n"
        "from traceaudit.cli.main import main\n"
        "main(sys.argv[1:])\n"
        f"sys.exit(', '.join(name for name in {HEAVY} if name in sys.modules) or None)"
    )
    trace = ROOT / "traces" / "eager-decode.json.gz"
    done = subprocess.run([sys.executable, "-c", code, "reconcile", trace], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("question", [audit.reconcile, audit.kernels, audit.inspect])
def test_analyses_leave_the_tables_alone(question, monkeypatch):
    traces = []

    def noted(*args, **options):
        trace = ingest.read(*args, **options)
        traces.append((trace, fingerprint(trace)))
        return trace

    monkeypatch.setattr(reading, "read", noted)
    question(str(ROOT / "traces" / "eager-decode.json.gz"), ReconcileOptions())
    assert [fingerprint(trace) for trace, _ in traces] == [before for _, before in traces] != []


def fingerprint(trace: Trace) -> str:
    digest = hashlib.sha256()
    for table in (trace.ops, trace.host, trace.threads, trace.syncs, trace.overheads, trace.collectives):
        for column in fields(table):
            values = getattr(table, column.name)
            assert not values.flags.writeable
            digest.update(values.tobytes())
    return digest.hexdigest()

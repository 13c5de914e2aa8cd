"""What starting the command line costs."""

import subprocess
import sys
from pathlib import Path

import samples

HEAVY = {"numpy", "pandas", "networkx", "plotly", "jinja2", "rich", "msgspec"}


RUN_ON_SAMPLES = """
import samples, traceaudit.audit
traceaudit.audit.reconcile = lambda *args, **kwargs: samples.graph_decode()
from traceaudit.cli.main import main
assert main(["reconcile", "a.json", "--rank", "0", "--format", "table", "--wall-ms", "3"]) == 0
"""


def modules_after(code):
    script = f"import sys\n{code}\nprint(' '.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_nothing_heavy():
    assert not HEAVY & modules_after("from traceaudit.cli.main import main; main(['--help'])")
    assert not HEAVY & modules_after("from traceaudit.cli.main import main; main(['reconcile', '--help'])")


def test_a_command_imports_no_more_than_it_needs():
    loaded = modules_after(f"sys.path.insert(0, {str(Path(samples.__file__).parent)!r})\n{RUN_ON_SAMPLES}")
    assert "numpy" in loaded
    assert not {"pandas", "networkx", "plotly", "jinja2", "rich.console", "pydantic"} & loaded


def test_one_command_loads_no_other():
    loaded = modules_after("from traceaudit.cli.main import main; main(['kernels', '--help'])")
    assert "traceaudit.cli.kernels" in loaded
    assert "traceaudit.cli.reconcile" not in loaded


def test_module_runs():
    done = subprocess.run(
        [sys.executable, "-m", "traceaudit", "--version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("traceaudit ")

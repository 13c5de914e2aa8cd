"""Run the command line in this process, on results built by hand."""

import pytest
import samples

from traceaudit.cli.main import main


@pytest.fixture
def run(capsys):
    """Run the command line and return (exit code, stdout, stderr)."""

    def call(*args):
        code = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def calls(monkeypatch):
    """Replace the audit by samples; the calls that it got are kept as (command, path, options)."""
    kept = []

    def fake(command, result):
        def audit(path, options, *, progress=None):
            kept.append((command, path, options))
            if progress is not None:
                progress(1, 2)
            return result() if callable(result) else result

        return audit

    for command, result in (
        ("reconcile", samples.graph_decode),
        ("kernels", samples.kernel_report),
        ("inspect", samples.inspection),
    ):
        monkeypatch.setattr(f"traceaudit.audit.{command}", fake(command, result))
    return kept

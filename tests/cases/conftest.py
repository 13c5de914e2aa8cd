"""Run the command line in this process on the inputs of the cases."""

import json
from pathlib import Path

import pytest

from traceaudit.cli.main import main

INPUTS = Path(__file__).parent / "inputs"


@pytest.fixture
def run(capsys):
    """Run a command on an input and return (exit code, stdout, stderr)."""

    def call(command, name, *flags):
        code = main([command, str(INPUTS / name), *flags])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def document(run):
    """Run a command that must succeed and return its JSON document."""

    def call(command, name, *flags):
        code, out, err = run(command, name, *flags, "--format", "json")
        assert code == 0, err
        return json.loads(out, parse_constant=pytest.fail)

    return call

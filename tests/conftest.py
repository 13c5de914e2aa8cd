"""Options and fixtures of the whole test suite."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

EXPECTED = Path(__file__).parent / "golden" / "expected"


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected reports instead of comparing")


@pytest.fixture
def golden(request):
    """Compare text with the file of that name in tests/golden/expected, or rewrite the file."""

    def compare(name, text):
        path = EXPECTED / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.exists(), f"no expected report {name}: run pytest with --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return compare

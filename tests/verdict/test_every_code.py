"""No code about the trace without a trace that raises it and one that does not."""

import re
from pathlib import Path

import pytest

from traceaudit.model.findings import CODES

TEXT = "".join(
    path.read_text(encoding="utf-8")
    for path in Path(__file__).parent.glob("test_*.py")
    if path.name != Path(__file__).name
)


@pytest.mark.parametrize("code", sorted(code for code, what in CODES.items() if what.about_trace))
def test_the_code_is_raised_by_a_test(code):
    assert re.search(rf'(?:only\("{code}"|findings\["{code}"\]|\["{code}"\] ==)', TEXT)

"""Sphinx configuration."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, NumpyDocstring

import traceaudit

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "traceaudit"
author = "traceaudit contributors"
copyright = "traceaudit contributors"  # noqa: A001  (Sphinx's name)
release = version = traceaudit.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "from_source",
    "pictures",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"traceaudit {release}"

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 4

# Single backticks in docstrings mark code, whether or not it is an object that has a page.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# Examples in docstrings run under pytest, in their own modules.
doctest_test_doctest_blocks = ""
nitpick_ignore_regex = [
    # The build has to work without network, so types of other packages are not linked.
    ("py:.*", r"(re|collections|enum|numpy|np|npt|pathlib|pandas|pd|typing)\..*"),
    # Parts of results that have no page of their own.
    ("py:.*", r"traceaudit\.model\.\w+\..*"),
]

SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?:    .*\n|\n(?=    ))+)", re.MULTILINE)


def read_numpydoc(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Turn numpydoc sections into fields; names that share a description get one each.

    The napoleon extension itself would take the words before a colon in a property's docstring for its type.
    """
    if what in {"attribute", "data", "property"}:
        return
    text = SHARED.sub(lambda match: "".join(f"{one}\n{match[2]}" for one in match[1].split(", ")), "\n".join(lines))
    lines[:] = NumpyDocstring(text.split("\n"), Config(napoleon_use_ivar=True), app, what, name, obj, options).lines()


def setup(app: Sphinx) -> None:
    """Connect what no extension does."""
    app.connect("autodoc-process-docstring", read_numpydoc)

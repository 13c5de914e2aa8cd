"""Configurations of well-known models, packaged so that a question can be asked without their files."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypedDict

from traceaudit.errors import UsageError

__all__ = ["Preset", "preset", "presets"]


@dataclass(frozen=True, slots=True)
class Preset:
    """The fields of a model's ``config.json`` that matter for a step, and where they come from.

    Attributes
    ----------
    key
        What the user types.
    name
        What the makers call it.
    aliases
        Further keys: models of the same shape.
    parameters
        Weights that the makers state, to check the fields against.
    """

    key: str
    name: str
    aliases: tuple[str, ...]
    parameters: float
    source: str
    config: Mapping[str, object]


class _Content(TypedDict):
    name: str
    aliases: list[str]
    parameters: float
    source: str
    config: dict[str, object]


def preset(key: str) -> Preset:
    """Return a packaged model by its key or an alias; case and ``_`` for ``-`` do not matter.

    Raises
    ------
    UsageError
        If there is none; the hint names near ones.

    Examples
    --------
    >>> preset("deepseek-r1").name
    'DeepSeek-V3'
    """
    known = {name: item for item in presets() for name in (item.key, *item.aliases)}
    wanted = key.strip().lower().replace("_", "-").rpartition("/")[2]
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=4, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"packaged are {', '.join(item.key for item in presets())}"
    raise UsageError(f"{key!r} is neither a file nor a packaged model", hint=hint)


@cache
def presets() -> tuple[Preset, ...]:
    """Return all packaged models, by key."""
    folder = files("traceaudit.model").joinpath("data", "models")
    entries = [entry for entry in folder.iterdir() if entry.name.endswith(".json")]
    found = [_preset(entry.name.removesuffix(".json"), json.loads(entry.read_text("utf-8"))) for entry in entries]
    return tuple(sorted(found, key=lambda item: item.key))


def _preset(key: str, content: _Content) -> Preset:
    return Preset(
        key=key,
        name=content["name"],
        aliases=tuple(content["aliases"]),
        parameters=content["parameters"],
        source=content["source"],
        config=content["config"],
    )

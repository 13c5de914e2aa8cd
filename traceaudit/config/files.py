"""Files that flags name."""

import difflib
from pathlib import Path

from traceaudit.errors import ConfigError

__all__ = ["existing"]


def existing(flag: str, path: str) -> str:
    """Return `path` if something lies there.

    Raises
    ------
    ConfigError
        If nothing does; the hint names a near file.
    """
    place = Path(path)
    try:
        if place.exists():
            return path
        names = [entry.name for entry in place.parent.iterdir()] if place.parent.is_dir() else []
    except (OSError, ValueError):
        names = []
    near = difflib.get_close_matches(place.name, names, n=1, cutoff=0.75)
    raise ConfigError("no such file", where=path, hint=f"did you mean {near[0]}?" if near else f"check {flag} FILE")

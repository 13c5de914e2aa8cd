"""``MANIFEST.toml``: what each recording is, how it was made, and what is known of it."""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["MANIFEST", "adopt", "verify"]

MANIFEST = "MANIFEST.toml"
ENTRY_SUFFIX = ".entry.json"


def verify(folder: Path) -> list[str]:
    """Return what differs between the manifest of ``folder`` and the files in it; empty if nothing.

    A listed file must exist with the listed size and SHA-256, and every ``.json.gz`` and ``.csv``
    must be listed.
    """
    manifest = _read(folder)
    entries = [*manifest.get("recording", []), *manifest.get("counters", [])]
    problems = []
    for entry in entries:
        path = folder / entry["file"]
        if not path.is_file():
            problems.append(f"{entry['file']}: missing")
        elif _identity(path) != {key: entry[key] for key in ("bytes", "sha256")}:
            problems.append(f"{entry['file']}: not the file that the manifest lists")
    listed = {entry["file"] for entry in entries}
    found = {
        path.relative_to(folder).as_posix() for pattern in ("**/*.json.gz", "**/*.csv") for path in folder.glob(pattern)
    }
    return problems + [f"{name}: not listed" for name in sorted(found - listed)]


def adopt(folder: Path, source: Path) -> list[str]:
    """Move the recordings in ``source`` into ``folder`` and list them; return their names.

    Each recording lies beside a ``NAME.entry.json`` that describes it, in ``source`` or below.
    Entries of the same file are replaced.
    """
    manifest = _read(folder)
    adopted = []
    for description in sorted(source.glob(f"**/*{ENTRY_SUFFIX}")):
        entry = json.loads(description.read_text())
        table = entry.pop("table")
        recorded = description.parent / Path(entry["file"]).name
        target = folder / entry["file"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(recorded.read_bytes())
        others = [old for old in manifest.get(table, []) if old["file"] != entry["file"]]
        head = {"file": entry.pop("file"), **_identity(target)}
        manifest[table] = sorted([*others, head | entry], key=lambda item: item["file"])
        adopted.append(head["file"])
    (folder / MANIFEST).write_text(_to_toml(manifest))
    return adopted


def _read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    path = folder / MANIFEST
    return tomllib.loads(path.read_text()) if path.exists() else {}


def _identity(path: Path) -> dict[str, int | str]:
    content = path.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _to_toml(document: Mapping[str, object]) -> str:
    return "\n".join(_table_lines(document, ())).strip() + "\n"


def _table_lines(table: Mapping[str, object], path: tuple[str, ...]) -> Iterable[str]:
    """Yield the lines of a table: plain keys first, as TOML demands, then its tables."""
    for key, value in table.items():
        if not isinstance(value, Mapping) and not _is_table_array(value):
            yield f"{key} = {_value(value)}"
    for key, value in table.items():
        name = ".".join((*path, key))
        if isinstance(value, Mapping):
            yield from ("", f"[{name}]", *_table_lines(value, (*path, key)))
        elif isinstance(value, list) and _is_table_array(value):
            for item in value:
                yield from ("", f"[[{name}]]", *_table_lines(item, (*path, key)))


def _is_table_array(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _value(value: object) -> str:
    # JSON's strings, numbers, booleans and flat lists are TOML's too.
    return json.dumps(value, ensure_ascii=False, allow_nan=False)

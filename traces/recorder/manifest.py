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
RECORDED = ("**/*.json.gz", "**/*.csv.gz", "**/*.log", "**/*.jsonl", "**/*config.json")


def verify(folder: Path) -> list[str]:
    """Return what differs between the manifest of ``folder`` and the files in it; empty if nothing.

    A listed file must exist with the listed size and SHA-256, and every recording and what lies
    beside it must be listed.
    """
    problems = []
    listed = set()
    for entry in _files(_read(folder)):
        path = folder / entry["file"]
        listed.add(entry["file"])
        if not path.is_file():
            problems.append(f"{entry['file']}: missing")
        elif _identity(path) != {key: entry[key] for key in ("bytes", "sha256")}:
            problems.append(f"{entry['file']}: not the file that the manifest lists")
    found = {path.relative_to(folder).as_posix() for pattern in RECORDED for path in folder.glob(pattern)}
    return problems + [f"{name}: not listed" for name in sorted(found - listed)]


def adopt(folder: Path, source: Path) -> list[str]:
    """Move the recordings in ``source`` into ``folder`` and list them; return their names.

    Each recording lies in ``source`` where the manifest will list it, with a ``NAME.entry.json`` that
    describes it. Entries of the same file are replaced; runs of a series join those listed before.
    """
    manifest = _read(folder)
    adopted = []
    for description in sorted(source.glob(f"**/*{ENTRY_SUFFIX}")):
        entry = json.loads(description.read_text())
        for item in _files(entry):
            target = folder / item["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_recorded(source, item["file"]).read_bytes())
            facts = {key: item.pop(key) for key in list(item) if key != "file"}
            item.update(_identity(target) | facts)
            adopted.append(item["file"])
        table = entry.pop("table")
        manifest[table] = _with(manifest.get(table, []), entry)
    (folder / MANIFEST).write_text(_to_toml(manifest))
    return adopted


def _with(entries: list[dict[str, Any]], entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return ``entries`` with ``entry`` in its place: by name for a series, else by file."""
    key = "name" if "run" in entry else "file"
    same = [old for old in entries if old[key] == entry[key]]
    others = [old for old in entries if old[key] != entry[key]]
    if same and "run" in entry:
        runs = {run["file"]: run for run in same[0]["run"] + entry["run"]}
        entry["run"] = [runs[file] for file in sorted(runs)]
    return sorted([*others, entry], key=lambda item: item[key])


def _files(table: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield every table below ``table`` that stands for a file."""
    if "file" in table:
        yield table
    for value in table.values():
        if isinstance(value, dict):
            yield from _files(value)
        elif _is_table_array(value):
            for item in value:
                yield from _files(item)


def _recorded(source: Path, file: str) -> Path:
    """Return where ``file`` lies in ``source``: at its listed place, or at the top."""
    path = source / file
    return path if path.is_file() else source / path.name


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

"""Budgets as TOML files, checked key by key; an error names the line."""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from traceaudit.errors import ConfigError
from traceaudit.ingest.tomllines import KeyPath, key_lines
from traceaudit.model.budget import (
    ACCOUNTS,
    DEFAULT_LIMITS,
    Budget,
    FloorRule,
    KernelRule,
    LaunchRule,
    Limits,
    MeasureRule,
    ShareRule,
)
from traceaudit.model.findings import Verdict
from traceaudit.model.likeness import FACTS
from traceaudit.units import NS_PER_MS, NS_PER_US

__all__ = ["parse_budget", "read_budget"]

MAX_BYTES = 1 << 20
_LIMITS = ("relative", "absolute_us", "step_share")
_MEASURES = {"total": "op_time", "busy": "busy", "window": "window", "wall": "wall"}
_TABLES = ("limits", "gate", "kernel", "account", *_MEASURES, "launches", "unaccounted", "floor")
_GATE = ("confidence", "hidden", "hidden_step_share", "min_runs", "completeness", "allow")


def read_budget(path: str) -> Budget:
    """Read a budget.

    Raises
    ------
    ConfigError
        If the file cannot be read, is no TOML, or has a key or value that means nothing.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise ConfigError(
            f"cannot read the budget: {exc.strerror or exc}", where=path, hint="traceaudit check --init writes one"
        ) from exc
    if len(data) > MAX_BYTES:
        raise ConfigError("this is no budget: more than 1 MB", where=path)
    try:
        return parse_budget(data.decode("utf-8"), path)
    except UnicodeDecodeError as exc:
        raise ConfigError("the budget is not UTF-8 text", where=path) from exc


def parse_budget(text: str, source: str) -> Budget:
    r"""Turn the text of a budget into a budget; `source` is named in errors.

    Raises
    ------
    ConfigError
        As `read_budget`.

    Examples
    --------
    >>> parse_budget("[limits]\nrelative = 0.03", "traceaudit.toml").limits
    Limits(relative=0.03, absolute_ns=None, step_frac=None)
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line = re.search(r"\(at line (\d+)", str(exc))
        where = f"{source}:{line[1] if line else len(text.splitlines())}"
        raise ConfigError(f"not valid TOML: {str(exc).split(' (at')[0].lower()}", where=where) from exc
    return _Reader(document, source, dict(key_lines(text))).budget()


class _Reader:
    """Reads the tables of a budget and complains with lines."""

    def __init__(self, document: Mapping[str, object], source: str, lines: Mapping[KeyPath, int]) -> None:
        self._document, self._source, self._lines = document, source, lines

    def budget(self) -> Budget:
        self._known((), self._document, _TABLES)
        gate = self._table(("gate",))
        self._known(("gate",), gate, _GATE)
        default = Budget()
        usual = {
            "confidence": default.confidence,
            "hidden": default.hidden_frac,
            "hidden_step_share": default.hidden_step_frac,
        }
        gate_or_usual = {**usual, **gate}
        limits = self._limits(("limits",), self._table(("limits",)), alone=True)
        return Budget(
            source=self._source,
            limits=DEFAULT_LIMITS if limits is None else limits,
            confidence=self._number(("gate",), gate_or_usual, "confidence", 0.5, 0.999999) or default.confidence,
            hidden_frac=self._number(("gate",), gate_or_usual, "hidden", 0, 10) or 0.0,
            hidden_step_frac=self._number(("gate",), gate_or_usual, "hidden_step_share", 0, 10) or 0.0,
            require=self._verdict(gate),
            min_runs=self._count(("gate",), gate, "min_runs", least=1) or default.min_runs,
            allow=self._allow(gate),
            kernels=tuple(self._kernel(number, table) for number, table in enumerate(self._list("kernel"))),
            measures=tuple(self._measures()),
            launches=tuple(self._launches()),
            unaccounted=tuple(self._unaccounted()),
            floors=tuple(self._floors()),
        )

    def _kernel(self, number: int, table: Mapping[str, object]) -> KernelRule:
        path: KeyPath = ("kernel", number)
        self._known(path, table, ("match", *_LIMITS, "max_us", "max_launches", "ignore"))
        pattern = table.get("match")
        if not isinstance(pattern, str) or not pattern:
            self._fail((*path, "match"), "a kernel rule needs match, a regular expression", 'write match = "flash_fwd"')
        try:
            match = re.compile(pattern)
        except re.error as exc:
            self._fail((*path, "match"), f"match is no regular expression: {pattern!r}: {exc}")
        ignore = table.get("ignore", False)
        if not isinstance(ignore, bool):
            self._fail((*path, "ignore"), f"ignore must be true or false, found {ignore!r}")
        rule = KernelRule(
            rule=f"kernel[{number}]",
            line=self._line(path),
            match=match,
            limits=self._limits(path, table),
            max_ns=self._time(path, table, "max_us", NS_PER_US),
            max_launches=self._count(path, table, "max_launches"),
            ignore=ignore,
        )
        if rule.limits is None and rule.max_ns is None and rule.max_launches is None and not ignore:
            self._fail(
                path, "a kernel rule without a limit", "give relative, absolute_us, max_us, max_launches or ignore"
            )
        return rule

    def _measures(self) -> Iterator[MeasureRule]:
        for name, measure in _MEASURES.items():
            if name in self._document:
                yield self._measure((name,), self._table((name,)), measure)
        accounts = self._table(("account",))
        self._known(("account",), accounts, ACCOUNTS)
        for name, table in accounts.items():
            if not isinstance(table, Mapping):
                self._fail(("account", name), f"account.{name} must be a table")
            yield self._measure(("account", name), table, name)

    def _measure(self, path: KeyPath, table: Mapping[str, object], measure: str) -> MeasureRule:
        self._known(path, table, (*_LIMITS, "max_us", "max_share"))
        rule = MeasureRule(
            rule=".".join(map(str, path)),
            line=self._line(path),
            measure=measure,
            limits=self._limits(path, table),
            max_ns=self._time(path, table, "max_us", NS_PER_US),
            max_frac=self._number(path, table, "max_share", 0, 1e6),
        )
        if rule.limits is None and rule.max_ns is None and rule.max_frac is None:
            self._fail(path, f"[{rule.rule}] has no limit", "give relative, absolute_us, max_us or max_share")
        return rule

    def _launches(self) -> Iterator[LaunchRule]:
        table = self._table(("launches",))
        self._known(("launches",), table, ("max", "increase"))
        if table:
            maximum, increase = (self._count(("launches",), table, key) for key in ("max", "increase"))
            yield LaunchRule("launches", self._line(("launches",)), maximum, increase)

    def _unaccounted(self) -> Iterator[ShareRule]:
        table = self._table(("unaccounted",))
        self._known(("unaccounted",), table, ("max_share",))
        if table:
            most = self._number(("unaccounted",), table, "max_share", 0, 1)
            yield ShareRule("unaccounted", self._line(("unaccounted",)), 0.0 if most is None else most)

    def _floors(self) -> Iterator[FloorRule]:
        table = self._table(("floor",))
        self._known(("floor",), table, ("ms", "min_share"))
        if not table:
            return
        floor = self._time(("floor",), table, "ms", NS_PER_MS)
        least = self._number(("floor",), table, "min_share", 0, 1)
        if floor is None or least is None:
            self._fail(("floor",), "[floor] needs ms and min_share", "traceaudit roofline gives the floor in ms")
        yield FloorRule("floor", self._line(("floor",)), floor, least)

    def _limits(self, path: KeyPath, table: Mapping[str, object], *, alone: bool = False) -> Limits | None:
        if alone:
            self._known(path, table, _LIMITS)
        relative = self._number(path, table, "relative", 0, 1e6)
        absolute = self._time(path, table, "absolute_us", NS_PER_US)
        share = self._number(path, table, "step_share", 0, 1e6)
        return None if relative is None and absolute is None and share is None else Limits(relative, absolute, share)

    def _verdict(self, gate: Mapping[str, object]) -> Verdict:
        value = gate.get("completeness", str(Verdict.PARTIAL))
        known = [str(verdict) for verdict in Verdict]
        if not isinstance(value, str) or value not in known:
            self._fail(("gate", "completeness"), f"completeness must be one of {', '.join(known)}, found {value!r}")
        return Verdict(value)

    def _allow(self, gate: Mapping[str, object]) -> frozenset[str]:
        value = gate.get("allow", [])
        known = (*FACTS, "all")
        if not isinstance(value, list) or any(item not in known for item in value):
            self._fail(("gate", "allow"), f"allow must be a list of {', '.join(known)}, found {value!r}")
        return frozenset(map(str, value))

    def _time(self, path: KeyPath, table: Mapping[str, object], key: str, unit_ns: int) -> float | None:
        value = self._number(path, table, key, 0, 1e12)
        return None if value is None else value * unit_ns

    def _number(self, path: KeyPath, table: Mapping[str, object], key: str, least: float, most: float) -> float | None:
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self._fail(
                (*path, key), f"{key} must be a number, found {value!r}", "shares are written as 0.02, without %"
            )
        if not least <= value <= most:
            self._fail((*path, key), f"{key} must lie between {least:g} and {most:g}, found {value!r}")
        return float(value)

    def _count(self, path: KeyPath, table: Mapping[str, object], key: str, *, least: int = 0) -> int | None:
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self._fail((*path, key), f"{key} must be a whole number of {least} or more, found {value!r}")
        return value

    def _table(self, path: tuple[str]) -> Mapping[str, object]:
        table = self._document.get(path[0], {})
        if not isinstance(table, Mapping):
            self._fail(path, f"{path[0]} must be a table", f"write [{path[0]}]")
        return table

    def _list(self, name: str) -> list[Mapping[str, object]]:
        tables = self._document.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
            self._fail((name,), f"{name} must be a list of tables", f"write [[{name}]]")
        return tables

    def _known(self, path: KeyPath, table: Mapping[str, object], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                close = get_close_matches(key, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
                self._fail((*path, key), f"unknown key {key!r}", hint)

    def _line(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest table that it stands in."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return None

    def _fail(self, path: KeyPath, message: str, hint: str | None = None) -> NoReturn:
        line = self._line(path)
        raise ConfigError(message, where=self._source if line is None else f"{self._source}:{line}", hint=hint)

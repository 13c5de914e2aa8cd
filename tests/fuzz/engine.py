"""One damaged input from a seed: which trace, which writer, which damage, and what came of it."""

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from random import Random

import zstandard
from builders import TraceBuilder
from fuzz.bases import SHAPES, build
from fuzz.oracle import BYTE_CODES, Failure, is_strict_json, judge, run
from fuzz.rows import DAMAGES, Inapplicable
from fuzz.texts import BYTES, COMPRESSED, FIELDS, SEEN
from renderers import Document, document, dump, render

from traceaudit.model.results import Reconciliation

__all__ = ["KINDS", "Base", "Damaged", "Inapplicable", "base_of", "damaged", "outcome_of"]

WRITERS = ("kineto-2.6", "kineto-2.12", "python", "cpu-wheel", "compact", "begin-end", "nightly-epoch")
BASES = 12
"""Traces of each shape; drawn once, so that each need be read in good order only once."""

KINDS = {
    **{f"rows: {name}": ("rows", name) for name in DAMAGES},
    **{f"fields: {name}": ("fields", name) for name in FIELDS},
    **{f"bytes: {name}": ("bytes", name) for name in BYTES},
    **{f"compressed: {name}": ("compressed", name) for name in COMPRESSED},
    "several: rows, fields and bytes": ("several", ""),
}


@dataclass(frozen=True, slots=True)
class Base:
    """An undamaged trace, its file, and its report."""

    trace: TraceBuilder
    writer: str
    data: bytes
    report: Reconciliation


@dataclass(frozen=True, slots=True)
class Damaged:
    """A damaged file and what is to be expected of it."""

    base: Base
    data: bytes
    judge: Callable[..., str]


@cache
def base_of(shape: str, number: int, writer: str) -> Base:
    """Return a base; it must be complete, since findings of its own would hide those of the damage."""
    trace = build(shape, Random(f"{shape} {number}"))
    data = render(trace, writer)
    report = run(data).report
    if report is None or report.completeness.findings:
        raise Failure(f"the base {shape} {number} is not healthy")
    return Base(trace, writer, data, report)


def damaged(kind: str, rng: Random) -> Damaged:
    """Make a damaged input of a kind.

    Raises
    ------
    Inapplicable
        If the trace drawn has nothing that could be damaged so.
    """
    family, name = KINDS[kind]
    base = base_of(rng.choice(tuple(SHAPES)), rng.randrange(BASES), rng.choice(WRITERS))
    if family == "several":
        return _several(base, rng)
    if family == "rows":
        damage = DAMAGES[name]
        trace = deepcopy(base.trace)
        damage.apply(trace, rng)
        data = render(trace, base.writer)
        excused = damage.reason is not None
        return Damaged(
            base, data, lambda out: judge(out, base.report, damage.codes, always=damage.always, excused=excused)
        )
    if family == "fields":
        made = _copy(document(base.trace, base.writer))
        FIELDS[name](made, rng)
        data = dump(made).encode()
        if name in SEEN:
            return Damaged(base, data, lambda out: judge(out, base.report, SEEN[name][1], always=True))
    elif family == "bytes":
        data = BYTES[name](base.data, rng)
    else:
        data = COMPRESSED[name](base.data, rng)
    excused = is_strict_json(_unpacked(data) if name == "zstd" else data)
    return Damaged(base, data, lambda out: judge(out, base.report, BYTE_CODES, excused=excused))


def _several(base: Base, rng: Random) -> Damaged:
    """Damage rows, then fields, then bytes; which finding covers what cannot be told, so only crashes count."""
    trace = deepcopy(base.trace)
    for name in rng.sample(sorted(DAMAGES), rng.randint(0, 2)):
        with suppress(Inapplicable):
            DAMAGES[name].apply(trace, rng)
    made = _copy(document(trace, base.writer))
    for name in rng.sample(sorted(FIELDS), rng.randint(0, 2)):
        FIELDS[name](made, rng)
    data = dump(made).encode()
    for name in rng.sample(sorted(BYTES), rng.randint(0, 3)):
        data = BYTES[name](data, rng) if data else data
    return Damaged(base, data, lambda out: judge(out, base.report, (), excused=True))


def outcome_of(kind: str, rng: Random, *, rendered: bool = False) -> str:
    """Damage a trace and say what came of it: refused, unchanged, covered, undetectable or inapplicable.

    Raises
    ------
    Failure
        If the input was not dealt with as it must be.
    """
    try:
        one = damaged(kind, rng)
    except Inapplicable:
        return "inapplicable"
    return one.judge(run(one.data, rendered=rendered))


def _unpacked(data: bytes) -> bytes:
    """Return what a zstd stream holds; without a checksum, damage to it may come out as other text, and no error."""
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except zstandard.ZstdError:
        return b""


def _copy(made: Document) -> Document:
    return Document(deepcopy(made.head), deepcopy(made.events), deepcopy(made.tail), made.layout, is_list=made.is_list)

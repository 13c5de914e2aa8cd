"""Damage to fields of the document and to its bytes, whatever they say."""

import gzip
import re
from collections.abc import Callable
from random import Random

import zstandard
from renderers import Document, Literal

__all__ = ["BYTES", "COMPRESSED", "FIELDS", "SEEN"]

_TOKENS = [
    b"NaN", b"-Infinity", b"inf", b"N/A", b"nan(ind)", b"0x7ffe", b"None", b"True", b"1e999", b"-0", b"1e308",
    b"18446744073709551616",
    b"\x00", b"\x01", b"\x1b[31m", b"\xff\xfe", b"\xed\xa0\x80", b"\\", b"\\u", b"\\ud800", b'"', b"{", b"}", b"[",
    b"]", b",", b":", b"{}",
    b"[]", b"null", b"'", b"//", b"\n", b"\r\n", b"\xef\xbb\xbf", b'{"ph":"X"},', b'},{"ph":"X"', b'],"x":[',
    b"]}", b"/*", b"traceEvents",
]  # fmt: skip
_VALUES = [
    None, "", "x", "12.5", "1e5", -1, 0, 1, 0.5, True, [], {}, [1, 2, 3], {"a": 1}, 2**53, 2**63, 2**64, -(2**63),
    10**30, 1e308,
    "9" * 400, "-5.001", " 7 ", "NaN", "stream 3", "[TP01] 7", "0x10", 1e-9, 253402300800000000, -1e15,
]  # fmt: skip
_KEYS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id"]
_ARGS = ["correlation", "stream", "device", "External id", "grid", "block", "graph id", "graph node id", "bytes"]


def _events(document: Document) -> list[dict]:
    """Return the rows; one that is not in the document where it has none."""
    return [event for event in document.events if isinstance(event, dict)] or [{}]


def _set_field(document: Document, rng: Random) -> None:
    for _ in range(rng.randint(1, 4)):
        rng.choice(_events(document))[rng.choice(_KEYS)] = rng.choice(_VALUES)


def _delete_field(document: Document, rng: Random) -> None:
    for _ in range(rng.randint(1, 4)):
        rng.choice(_events(document)).pop(rng.choice(_KEYS), None)


def _set_argument(document: Document, rng: Random) -> None:
    for _ in range(rng.randint(1, 4)):
        args = rng.choice(_events(document)).get("args")
        if isinstance(args, dict):
            args[rng.choice(_ARGS)] = rng.choice(_VALUES)


def _change_top_key(document: Document, rng: Random) -> None:
    keys = document.head if rng.random() < 0.7 or not document.tail else document.tail
    known = ["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "schemaVersion", "traceaudit", "traceName"]
    for _ in range(rng.randint(1, 3)):
        number = rng.choice([0, 1, -5, 10**12, 10**30, 1e308, 5e-324, "9" * 5000, "7", None])
        shaped = [
            [{"id": number, "name": "x", "numSms": number}],
            {"rank": number, "world_size": number},
            {"schema_version": 1, "wall_ns_per_step": [number], "batch": number},
        ]
        keys[rng.choice(known)] = rng.choice([*_VALUES, *shaped, *shaped, *shaped])


def _odd_elements(document: Document, rng: Random) -> None:
    for _ in range(rng.randint(1, 3)):
        document.events.insert(rng.randint(0, len(document.events)), rng.choice(_VALUES))


def _swap_fields(document: Document, rng: Random) -> None:
    first, second = rng.choice(_events(document)), rng.choice(_events(document))
    key = rng.choice(_KEYS)
    first[key], second[key] = second.get(key), first.get(key)


def _bare_values(document: Document, rng: Random) -> None:
    """Write words where numbers belong, as broken writers do."""
    for _ in range(rng.randint(1, 3)):
        event = rng.choice(_events(document))
        word = Literal(
            rng.choice(["inf", "-inf", "nan", "N/A", "NaN", "0xdeadbeef", "1.", ".5", "+1", "01", "", "True"])
        )
        args = event.get("args")
        if isinstance(args, dict) and rng.random() < 0.6:
            args["blocks per SM"] = word
        else:
            event[rng.choice(["ts", "dur", "tid"])] = word


def _device_rows(document: Document) -> list[dict]:
    rows = [event for event in _events(document) if str(event.get("cat", "")).startswith(("kernel", "gpu_mem"))]
    return rows or [{"ts": 0, "dur": 0}]


def _lose_times(document: Document, rng: Random) -> None:
    """Give device rows no time, or one that is no number."""
    rows = _device_rows(document)
    for row in rng.sample(rows, rng.randint(1, min(4, len(rows)))):
        field = rng.choice(["ts", "dur"])
        if rng.random() < 0.5:
            del row[field]
        else:
            row[field] = rng.choice([None, "", "soon", [], {}, True, "1e400", "NaN"])


def _never_timed(document: Document, rng: Random) -> None:
    """Write a record whose times the device never filled in."""
    rows = _device_rows(document)
    for row in rng.sample(rows, rng.randint(1, min(4, len(rows)))):
        row["ts"] = row["dur"] = 0


def _misspell(document: Document, rng: Random) -> None:
    rows = _device_rows(document)
    for row in rng.sample(rows, rng.randint(1, min(4, len(rows)))):
        row["cat"] = rng.choice(["kernal", "", "graph_event_node", "cuda_sync_", "cpu_instant_event"])


def _lose_arguments(document: Document, rng: Random) -> None:
    rows = _device_rows(document)
    for row in rng.sample(rows, rng.randint(1, min(4, len(rows)))):
        row["args"] = rng.choice([{}, [], None, "", 5])


_LOST = frozenset({"launch_without_op", "graph_replay_uneven", "capture_edge_loss", "device_without_ops"})

SEEN: dict[str, tuple[Callable[[Document, Random], None], frozenset[str]]] = {
    "device rows without times": (_lose_times, frozenset({"rows_dropped"})),
    "device rows at time 0 of length 0": (_never_timed, frozenset({"rows_dropped"})),
    "device rows of unknown categories": (_misspell, _LOST | {"rows_dropped"}),
    "device rows without arguments": (_lose_arguments, frozenset({"op_without_launch"})),
}
"""Damage to fields that must be noticed, and as what."""

FIELDS: dict[str, Callable[[Document, Random], None]] = {
    "fields of odd types": _set_field,
    "fields missing": _delete_field,
    "arguments of odd types": _set_argument,
    "keys around the events": _change_top_key,
    "elements that are no rows": _odd_elements,
    "fields exchanged": _swap_fields,
    "bare words": _bare_values,
    **{name: damage for name, (damage, _) in SEEN.items()},
}


def _place(data: bytes, rng: Random) -> int:
    return rng.randrange(max(1, len(data)))


def _flip_bits(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        changed[_place(data, rng)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _replace_bytes(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 10])):
        changed[_place(data, rng)] = rng.choice([0, 1, 10, 34, 44, 58, 91, 92, 93, 123, 125, 127, 128, 255, 48, 45, 32])
    return bytes(changed)


def _truncate(data: bytes, rng: Random) -> bytes:
    return data[: _place(data, rng)]


def _lose_start(data: bytes, rng: Random) -> bytes:
    return data[_place(data, rng) :]


def _lose_range(data: bytes, rng: Random) -> bytes:
    begin = _place(data, rng)
    return data[:begin] + data[begin + rng.choice([1, 2, 10, 100, 1000]) :]


def _repeat_range(data: bytes, rng: Random) -> bytes:
    begin, size = _place(data, rng), rng.choice([1, 2, 10, 100, 1000])
    return data[: begin + size] + data[begin:]


def _insert_token(data: bytes, rng: Random) -> bytes:
    for _ in range(rng.choice([1, 1, 2, 4])):
        place = _place(data, rng)
        data = data[:place] + rng.choice(_TOKENS) + data[place:]
    return data


def _replace_mark(data: bytes, rng: Random) -> bytes:
    """Drop or exchange a mark of JSON's grammar."""
    marks = [match.start() for match in re.finditer(rb'["{}\[\],:\\]', data)]
    for place in sorted(rng.sample(marks, min(len(marks), rng.choice([1, 1, 2]))), reverse=True):
        data = data[:place] + rng.choice([b"", b"", b'"', b",", b"}", b"]", b"{"]) + data[place + 1 :]
    return data


def _replace_number(data: bytes, rng: Random) -> bytes:
    numbers = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not numbers:
        return data
    match = rng.choice(numbers)
    token = rng.choice(
        [
            b"1e999",
            b"-1",
            b"0",
            b"9" * 30,
            b"9" * 5000,
            b"1e5",
            b"-0.0",
            b"1.7976931348623157e308",
            b"5e-324",
            b"0" * 20,
        ]
    )
    return data[: match.start()] + token + data[match.end() :]


def _lose_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _swap_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _concatenate(data: bytes, rng: Random) -> bytes:
    return data + rng.choice([b"", b"\n", b",", b"\0"]) + data


def _control_characters(data: bytes, rng: Random) -> bytes:
    names = [match.end() for match in re.finditer(rb'"name": ?"', data)]
    place = rng.choice(names or [0])
    return data[:place] + bytes(rng.randrange(32) for _ in range(3)) + data[place:]


def _raw_quotes(data: bytes, rng: Random) -> bytes:
    names = [match.end() for match in re.finditer(rb'"name": ?"', data)]
    place = rng.choice(names or [0])
    return data[:place] + rng.choice([b'a"b', b'"', b'x", "y', b'f(a="b", c)']) + data[place:]


def _encode_otherwise(data: bytes, rng: Random) -> bytes:
    return data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig"]))


def _wrap(data: bytes, rng: Random) -> bytes:
    return (
        rng.choice([b"\0" * 100, b"\n" * 50, b"garbage ", b"<html>", b"[" * 2000, b"{" * 2000, b'{"a":' * 1500]) + data
    )


BYTES: dict[str, Callable[[bytes, Random], bytes]] = {
    "bits flipped": _flip_bits,
    "bytes replaced": _replace_bytes,
    "truncated": _truncate,
    "start lost": _lose_start,
    "bytes lost": _lose_range,
    "bytes repeated": _repeat_range,
    "tokens put in": _insert_token,
    "marks dropped or exchanged": _replace_mark,
    "numbers replaced": _replace_number,
    "lines lost": _lose_lines,
    "lines exchanged": _swap_lines,
    "a second document": _concatenate,
    "control characters in names": _control_characters,
    "raw quotes in names": _raw_quotes,
    "another encoding": _encode_otherwise,
    "text before": _wrap,
}


def _gzip_damage(data: bytes, rng: Random) -> bytes:
    packed = gzip.compress(data, 1)
    return rng.choice([_truncate, _flip_bits, _replace_bytes, _lose_range, _repeat_range])(packed, rng)


def _zstd_damage(data: bytes, rng: Random) -> bytes:
    packed = zstandard.ZstdCompressor(1, write_checksum=rng.random() < 0.5).compress(data)
    return rng.choice([_truncate, _flip_bits, _replace_bytes, _lose_range, _repeat_range])(packed, rng)


COMPRESSED: dict[str, Callable[[bytes, Random], bytes]] = {"gzip": _gzip_damage, "zstd": _zstd_damage}

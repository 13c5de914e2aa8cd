"""Writes a large trace by repeating a recording with shifted times and ids.

The text of each event stays as its writer laid it out; only numbers are replaced. Runs as a process of its own, so
that its memory does not count for what is measured after it.
"""

import argparse
import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

NUMBER = re.compile(
    r'"(?P<key>ts|correlation|External id|Ev Idx|Python id|Python parent id|id|wait_on_cuda_event_record_corr_id)"'
    r"\s*:\s*(?P<value>\d+(?:\.\d+)?)|ProfilerStep#(?P<step>\d+)"
)
PAUSE_NS = 100_000
SHIFTED = ("ts", "step")


@dataclass
class Piece:
    """Text up to a number, and the number with the name of what it counts."""

    text: str
    key: str | None
    value: int


class Recording:
    """A trace split into what is repeated, what stands once, and the text around the events."""

    def __init__(self, path: Path) -> None:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            text = file.read()
        begin = text.index("[", text.index('"traceEvents"')) + 1
        self.head = text[:begin]
        repeated, self.once, end = _events(text, begin)
        self.tail = text[end:]
        self.texts = [event_text for event_text, _ in repeated]
        self.starts_ns = [_ns(event["ts"]) for _, event in repeated]
        timed = [(_ns(event["ts"]), _ns(event.get("dur", 0))) for _, event in repeated if event["ph"] == "X"]
        self.first_ns = min(start for start, _ in timed)
        self.span_ns = max(start + duration for start, duration in timed) - self.first_ns

    def pieces(self, fraction: float) -> tuple[list[Piece], int]:
        """Split the events that start in the first part of the recording; also return how many they are."""
        limit = self.first_ns + fraction * self.span_ns
        kept = [text for text, start in zip(self.texts, self.starts_ns, strict=True) if start <= limit]
        text, pieces, at = ",".join(kept) + ",", [], 0
        for match in NUMBER.finditer(text):
            key = match["key"] or "step"
            where = match.start("value") if match["key"] else match.start("step")
            value = match["value"] or match["step"]
            pieces.append(Piece(text[at:where], key, _ns(value) if key == "ts" else int(float(value))))
            at = match.end()
        pieces.append(Piece(text[at:], None, 0))
        return pieces, len(kept)


def write(recording: Recording, target: TextIO, *, copies: int, fraction: float = 1.0) -> int:
    """Write the trace and return its number of events."""
    pieces, kept = recording.pieces(fraction)
    strides = {key: 1 + max((p.value for p in pieces if p.key == key), default=0) for key in {p.key for p in pieces}}
    steps = [p.value for p in pieces if p.key == "step"]
    strides["step"] = 1 + max(steps, default=0) - min(steps, default=0)
    # One counter serves as correlation on both sides of a launch.
    strides["wait_on_cuda_event_record_corr_id"] = strides.get("correlation", 1)
    strides["Python parent id"] = strides.get("Python id", 1)
    strides["ts"] = recording.span_ns + PAUSE_NS
    target.write(recording.head)
    for copy in range(copies):
        parts: list[str] = []
        for piece in pieces:
            parts.append(piece.text)
            if piece.key is None:
                continue
            # An id of 0 means none.
            moves = piece.value > 0 or piece.key in SHIFTED
            value = piece.value + copy * strides[piece.key] if moves else piece.value
            parts.append(f"{value // 1000}.{value % 1000:03d}" if piece.key == "ts" else str(value))
        target.write("".join(parts))
    shift_ns = (copies - 1) * strides["ts"]
    target.write(",".join(_stretched(event, shift_ns) for event in recording.once))
    target.write(recording.tail)
    return copies * kept + len(recording.once)


def _events(text: str, begin: int) -> tuple[list[tuple[str, dict[str, Any]]], list[dict[str, Any]], int]:
    decoder = json.JSONDecoder(parse_float=str)
    repeated: list[tuple[str, dict[str, Any]]] = []
    once: list[dict[str, Any]] = []
    at = begin
    while True:
        blank = len(text[at : at + 1000]) - len(text[at : at + 1000].lstrip(" \n\r\t,"))
        if text[at + blank] == "]":
            return repeated, once, at + blank
        event, end = decoder.raw_decode(text, at + blank)
        if event["ph"] in "Xsf" and event.get("cat") != "Trace":
            repeated.append((text[at:end].lstrip(","), event))
        else:
            once.append(event)
        at = end


def _stretched(event: dict[str, Any], shift_ns: int) -> str:
    """Return an event that stands once, moved or lengthened to the end of the last copy."""
    moved = dict(event)
    if event["ph"] == "X":
        moved["dur"] = _Micros(_ns(event["dur"]) + shift_ns)
    elif event["ph"] == "i" and "End" in event["name"]:
        moved["ts"] = _Micros(_ns(event["ts"]) + shift_ns)
    fields = (f"{json.dumps(key)}: {_number_or_json(value, key)}" for key, value in moved.items())
    return "\n  {" + ", ".join(fields) + "}"


class _Micros(int):
    """Nanoseconds that are written as decimal microseconds."""


def _number_or_json(value: Any, key: str) -> str:
    if isinstance(value, _Micros):
        return f"{value // 1000}.{value % 1000:03d}"
    return value if key in ("ts", "dur") and isinstance(value, str) else json.dumps(value)


def _ns(micros: str | int) -> int:
    whole, _, decimals = str(micros).partition(".")
    return int(whole) * 1000 + int(decimals.ljust(3, "0")[:3])


def main() -> None:
    """Write one trace and print its number of events and bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("target", type=Path)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--events", type=int, help="at least this many events")
    size.add_argument("--bytes", type=int, help="at least this many bytes; less than one copy cuts the recording short")
    args = parser.parse_args()
    recording = Recording(args.recording)
    bytes_each = sum(map(len, recording.texts))
    copies = -(-args.events // len(recording.texts)) if args.events else -(-args.bytes // bytes_each)
    fraction = min(1.0, args.bytes / bytes_each) if args.bytes else 1.0
    while True:
        with args.target.open("w", encoding="utf-8") as file:
            events = write(recording, file, copies=copies, fraction=fraction)
        size = args.target.stat().st_size
        if size >= (args.bytes or 0) or fraction >= 1:
            break
        fraction = min(1.0, 1.05 * fraction)  # events are not spread evenly
    print(json.dumps({"events": events, "bytes": size, "copies": copies}))


if __name__ == "__main__":
    main()

"""Reading on where a row is broken: good rows as they are, the broken one repaired or dropped, each counted."""

import re
from collections import Counter
from dataclasses import dataclass, field

from traceaudit.ingest.decode import Block, Failure, decode_row, join_rows, parses_as_row
from traceaudit.ingest.repair import MAX_REPAIRED_BYTES, QUOTES, REPAIRS, repair
from traceaudit.ingest.rowcuts import END_OF_ROWS, NEXT_ROW, Taken, take_rows

__all__ = ["RepairLog", "resync"]

_SPACE = b" \t\r\n"
_ROW_OR_BRACKET = re.compile(rb'\{\s*(?:"(?:ph|name|cat|ts|pid|tid|dur|args|s|bp)"|\})|\]\s*(?:,\s*"|\}|\Z)')
_BETWEEN_ROWS = re.compile(rb"[ \t\r\n,]+")
_FIRST_WINDOW = 1 << 14
_MAX_CANDIDATES = 6  # ends that a broken row may have; broken ones rarely hold text that looks like a row's end
_MAX_PLACES = 3


@dataclass(slots=True)
class RepairLog:
    """What was repaired and dropped, and where first.

    Attributes
    ----------
    repairs
        How often each kind of repair was made.
    rows_repaired, rows_dropped
        Rows that a repair saved, and rows that none did.
    repair_places, drop_places
        Byte offsets of the first few of them.
    latest
        Repairs that the last repaired row needed.
    """

    repairs: Counter[str] = field(default_factory=Counter)
    rows_repaired: int = 0
    rows_dropped: int = 0
    repair_places: list[int] = field(default_factory=list)
    drop_places: list[int] = field(default_factory=list)
    latest: tuple[str, ...] = ()

    def repaired(self, done: dict[str, int], place: int) -> None:
        """Count the repairs of one row, or of the text around the rows."""
        self.repairs.update(done)
        self.latest = tuple(name for name in done if name in REPAIRS)
        self.rows_repaired += 1
        if len(self.repair_places) < _MAX_PLACES:
            self.repair_places.append(place)

    def dropped(self, place: int) -> None:
        """Count a row that could not be used."""
        self.rows_dropped += 1
        if len(self.drop_places) < _MAX_PLACES:
            self.drop_places.append(place)


def resync(text: bytes, *, last: bool, offset: int, log: RepairLog) -> Taken | None:
    """Read the rows of a text in which at least one is broken; None if more text is needed to go on.

    Parameters
    ----------
    text
        Starts at a row, or between two.
    last
        Whether no more text follows.
    offset
        Place of the text in the file, for the log.
    log
        Counts repairs and drops.
    """
    return _Resync(text, last=last, offset=offset, log=log).run()


class _Resync:
    def __init__(self, text: bytes, *, last: bool, offset: int, log: RepairLog) -> None:
        self._text = text
        self._last = last
        self._offset = offset
        self._log = log
        self._place = 0
        self._kept: list[bytes] = []
        self._dropped = 0
        self._window = _FIRST_WINDOW

    def run(self) -> Taken | None:
        text = self._text
        ended = False
        while not ended and self._to_next_row():
            if text[self._place : self._place + 1] == b"]":
                self._place += 1
                ended = True
            elif text[self._place : self._place + 1] != b"{":
                if not self._drop_garbage():
                    break
            elif not (self._take_good() or self._take_broken()):
                break
        if not self._place:
            return None
        return Taken(self._block(), self._place, ended=ended)

    def _block(self) -> Block:
        block = join_rows([piece for piece in self._kept if piece])
        block.dropped += self._dropped
        return block

    def _to_next_row(self) -> bool:
        """Go to the next byte that is neither space nor comma; whether there is one."""
        text, begin = self._text, self._place
        between = _BETWEEN_ROWS.match(text, begin)
        self._place = between.end() if between else begin
        commas = text.count(b",", begin, self._place)
        ends = text[self._place : self._place + 1] == b"]"
        extra = commas if ends else commas - 1
        if extra > 0:
            self._log.repaired({"extra commas": extra}, self._offset + self._place)
        return self._place < len(text)

    def _take_good(self) -> bool:
        """Take whole rows that are in order; whether there was one."""
        while True:
            piece = self._text[self._place : self._place + self._window]
            taken = _prefix_of_rows(piece)
            if taken is not None:
                self._kept.append(taken.block.text[1:-1])
                self._dropped += taken.block.dropped
                self._place += taken.size
                if taken.ended:
                    self._place -= 1  # the bracket is for the caller
                self._window *= 2
                return True
            if (size := _one_row(piece)) is not None:
                self._kept.append(piece[:size])
                self._place += size
                self._check_comma()
                return True
            if self._place + self._window >= len(self._text) or NEXT_ROW.search(piece):
                self._window = _FIRST_WINDOW
                return False
            self._window *= 4

    def _check_comma(self) -> None:
        """Count a comma that should follow the row just read, where another row does."""
        after = self._text[self._place : self._place + _FIRST_WINDOW].lstrip(_SPACE)
        if after.startswith(b"{"):
            self._log.repaired({"missing commas": 1}, self._offset + self._place)

    def _take_broken(self) -> bool:
        """Repair the row at the place, or drop it; False if its end is not in the text."""
        text, place = self._text, self._place
        for passed, end in enumerate(self._ends()):
            row = text[place:end]
            if len(row) > MAX_REPAIRED_BYTES:
                break
            fixed = repair(row, parses_as_row, self._log.latest)
            if fixed is not None or parses_as_row(row):
                if fixed is not None:
                    self._log_repaired(*fixed, passed)
                self._kept.append(fixed[0] if fixed is not None else row)
                self._place = end
                return True
        return self._drop_up_to_row()

    def _log_repaired(self, row: bytes, done: dict[str, int], passed: int) -> None:
        """Count a repaired row, and as dropped what the repair cost.

        That is rows put into a string, or the phase or category of the row itself.

        Parameters
        ----------
        passed
            Places before the end of the row at which it might have ended as well.
        """
        place = self._offset + self._place
        self._log.repaired(done, place)
        for _ in range(passed if QUOTES in done else 0):
            self._log.dropped(place)
        read = decode_row(row)
        if not read.ph or '"' in read.ph or '"' in (read.cat or ""):
            self._log.dropped(place)

    def _ends(self) -> list[int]:
        """Return where the row at the place could end, in order."""
        ends: list[int] = []
        place = self._place
        while len(ends) < _MAX_CANDIDATES:
            following = NEXT_ROW.search(self._text, place)
            # An end of the list can only be the nearer one, so look no further than the next row.
            limit = following.end() if following is not None else len(self._text)
            found = END_OF_ROWS.search(self._text, place, limit) or following
            if found is None:
                break
            place = found.start() + 1
            ends.append(place)
        if self._last and len(ends) < _MAX_CANDIDATES:
            ends.append(len(self._text.rstrip()))
        return ends

    def _drop_garbage(self) -> bool:
        """Leave out what is neither a row nor the end of the list; False if neither follows in the text."""
        following = _ROW_OR_BRACKET.search(self._text, self._place)
        if following is None:
            return False
        self._log.dropped(self._offset + self._place)
        self._place = following.start()
        return True

    def _drop_up_to_row(self) -> bool:
        """Leave out text up to the next row, or to the end of the list; False if neither is in the text."""
        following = NEXT_ROW.search(self._text, self._place)
        if following is None and self._last:
            following = END_OF_ROWS.search(self._text, self._place)
            if following is None:
                return False
        if following is None:
            return False
        self._log.dropped(self._offset + self._place)
        self._place = following.end()
        return True


def _one_row(text: bytes) -> int | None:
    """Return the size of the row that the text starts with, whatever follows it; None if that is no row."""
    try:
        decode_row(text)
    except Failure as failure:
        if failure.trailing and failure.position is not None:
            return len(text[: failure.position].rstrip())
        return None
    return len(text.rstrip())


def _prefix_of_rows(text: bytes) -> Taken | None:
    """Return the whole rows before the first broken one, None if there are none."""
    size = len(text)
    while size > 1:
        try:
            taken = take_rows(text[:size])
        except Failure as failure:
            if failure.truncated and failure.position is None:
                return None
            # Where the decoder names no place, half the text will do; the next round goes on from there.
            size = min(size - 1, failure.position - 1 if failure.position is not None else size // 2)
            continue
        return taken
    return None

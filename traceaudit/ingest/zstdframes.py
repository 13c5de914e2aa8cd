"""Where the frames of a Zstandard stream end: the decoder takes a stream that is cut for one that ends (RFC 8878)."""

from collections.abc import Callable

__all__ = ["Frames"]

_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50
_PLAIN_SIZE = (0, 2, 4, 8)
_DICTIONARY_SIZE = (0, 1, 2, 4)
_BLOCK_HEADER = 3
_CHECKSUM = 4
_RLE = 1


class Frames:
    """Follows frames and blocks as their bytes pass.

    Attributes
    ----------
    whole
        Whether the bytes so far end where a frame does.
    """

    def __init__(self) -> None:
        self.whole = True
        self._head = b""
        self._wanted = 4
        self._read: Callable[[bytes], None] = self._magic
        self._skip = 0
        self._checksum = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        at = 0
        while at < len(data):
            if self._skip:
                passed = min(self._skip, len(data) - at)
                self._skip -= passed
                at += passed
            else:
                taken = data[at : at + self._wanted - len(self._head)]
                self._head += taken
                at += len(taken)
                if len(self._head) == self._wanted:
                    head, self._head = self._head, b""
                    self._read(head)
            self.whole = not self._skip and not self._head and self._read == self._magic

    def _next(self, wanted: int, read: Callable[[bytes], None], skip: int = 0) -> None:
        self._wanted, self._read, self._skip = wanted, read, skip

    def _magic(self, head: bytes) -> None:
        magic = int.from_bytes(head, "little")
        if magic == _MAGIC:
            self._next(1, self._descriptor)
        elif magic & ~0xF == _SKIPPABLE:
            self._next(4, self._skippable)
        else:  # whatever follows the last frame; the decoder says what it thinks of it
            self._next(4, self._magic)

    def _skippable(self, head: bytes) -> None:
        self._next(4, self._magic, skip=int.from_bytes(head, "little"))

    def _descriptor(self, head: bytes) -> None:
        flags = head[0]
        single, self._checksum = bool(flags & 0x20), bool(flags & 0x04)
        plain = _PLAIN_SIZE[flags >> 6] or int(single)
        rest = int(not single) + _DICTIONARY_SIZE[flags & 3] + plain
        self._next(_BLOCK_HEADER, self._block, skip=rest)

    def _block(self, head: bytes) -> None:
        fields = int.from_bytes(head, "little")
        last, kind, size = fields & 1, fields >> 1 & 3, fields >> 3
        content = 1 if kind == _RLE else size
        if last:
            self._next(4, self._magic, skip=content + _CHECKSUM * self._checksum)
        else:
            self._next(_BLOCK_HEADER, self._block, skip=content)

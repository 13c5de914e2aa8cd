"""Where frames end: every cut inside one is seen, whatever the sizes of the pieces."""

import random

import pytest
import zstandard

from traceaudit.ingest.zstdframes import Frames

NOISE = random.Random(3).randbytes(300_000)
SKIPPABLE = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"notes"


def frame(data, **settings):
    return zstandard.ZstdCompressor(**settings).compress(data)


@pytest.mark.parametrize(
    "data",
    [
        frame(b""),
        frame(b"short"),
        frame(b"\0" * 500_000),
        frame(NOISE),
        frame(NOISE, write_checksum=True, write_content_size=False),
        SKIPPABLE,
        frame(b"one") + SKIPPABLE + frame(b"two", write_checksum=True),
    ],
    ids=["empty", "short", "run-length", "raw", "checksum", "skippable", "several"],
)
@pytest.mark.parametrize("size", [1, 7, 1 << 18])
def test_a_stream_is_whole_at_its_end_alone(data, size):
    frames = Frames()
    assert frames.whole
    for at in range(0, len(data), size):
        frames.feed(data[at : at + size])
        if len(data) < 100 and size == 1 and at + 1 not in (len(data), len(frame(b"one")), len(frame(b"one")) + 13):
            assert not frames.whole
    assert frames.whole
    cut = Frames()
    cut.feed(data[:-1])
    assert not cut.whole

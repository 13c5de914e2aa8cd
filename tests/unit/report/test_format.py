import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.report.format import Scale, bytes_text, duration, percent, plain, scale_for, shorten


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (999.6, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (99_960, "100 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (999_999_999, "1.00 s"),
        (-8_700_000, "-8.70 ms"),
        (3_600_000_000_000, "3,600 s"),
    ],
)
def test_durations_have_three_digits(time_ns, text):
    assert duration(time_ns) == text


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_duration_is_within_half_a_percent(time_ns):
    number, unit = duration(time_ns).replace(",", "").split()
    value = float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert value == pytest.approx(time_ns, rel=0.0051)


@pytest.mark.parametrize(
    ("largest_ns", "scale"),
    [
        (570_000_000, Scale("ms", 1_000_000, 2)),
        (-3_300_000, Scale("ms", 1_000_000, 3)),
        (800_000, Scale("µs", 1_000, 1)),
        (900, Scale("µs", 1_000, 3)),
        (200_000_000_000, Scale("s", 1_000_000_000, 3)),
    ],
)
def test_scales(largest_ns, scale):
    assert scale_for(largest_ns) == scale


def test_a_share_that_is_not_zero_does_not_read_as_zero():
    assert percent(1, 100_000) == "<0.1%"
    assert percent(0, 100_000) == "0.0%"
    assert percent(5, 0) == "-"


def test_bytes():
    assert [bytes_text(n) for n in (0, 999, 1_000, 314_572_800)] == ["0 B", "999 B", "1.00 kB", "315 MB"]


@pytest.mark.parametrize(
    "char", ["\x00", "\x07", "\x1b", "\n", "\r", "\t", "\x7f", "\x9b", "\u202e", "\u200b", "\u2028", "\ud800"]
)
def test_no_control_or_format_character_survives(char):
    assert char not in plain(f"a{char}b")
    assert plain(f"a{char}b").startswith("a\\")


@given(st.text(st.characters()))
def test_plain_text_is_printable_and_encodes(text):
    assert plain(text).isprintable() or "\xa0" in text or not text.isascii()
    plain(text).encode("utf-8")
    assert plain(plain(text)) == plain(text)


@given(st.text(max_size=60), st.integers(min_value=0, max_value=40))
def test_shortened_text_fits(text, width):
    assert len(shorten(text, width)) <= max(width, 0)
    assert len(text) > width or shorten(text, width) == text

"""Files that writers broke: every one is read with a word about it, or refused with its name. Times are µs."""

import pytest

US = 1_000


def only_device(document):
    (device,) = document["devices"]
    return device


def codes(document):
    return {finding["code"] for finding in document["completeness"]["findings"]}


def count(document, code):
    (found,) = [one for one in document["completeness"]["findings"] if one["code"] == code]
    return found["count"]


def totals(device, *, ops, busy, span, gaps):
    """Compare the totals of a device whose ops do not overlap, in µs."""
    found = device["totals"]
    assert (found["device_ops"], found["op_time_ns"], found["gaps"]) == (ops, round(busy * US), gaps)
    assert (found["busy_ns"], found["span_ns"]) == (round(busy * US), round(span * US))


def accounts(device, window, latency_by, **expected):
    """Compare the accounts of the ledger, in µs; those not named are 0."""
    ledger = device["ledger"]
    assert ledger["window_ns"] == round(window * US)
    assert {name: time for name, time in ledger["accounts"].items() if time} == {
        name: round(time * US) for name, time in expected.items()
    }
    assert list(ledger["idle_latency_by"].values()) == [round(time * US) for time in latency_by]


class TestInvalidJson:
    """B22: kernels 0+30, 40+10, 60+20 (the last a collective), launched 10 before each, 4 in the call."""

    def test_a_valid_file_is_not_touched(self, document):
        found = document("reconcile", "control-valid.json")
        totals(only_device(found), ops=3, busy=60, span=80, gaps=2)
        accounts(only_device(found), 90, (12, 18, 0), compute=40, exposed_comm=20, idle_latency=30)
        assert codes(found).isdisjoint({"file_repaired", "rows_dropped", "file_truncated"})

    @pytest.mark.parametrize("name", ["empty-pg-description", "windows-backslash", "raw-quotes-newline"])
    def test_what_can_be_repaired_is_counted_and_read(self, document, name):
        found = document("reconcile", f"{name}.json")
        totals(only_device(found), ops=3, busy=60, span=80, gaps=2)
        accounts(only_device(found), 90, (12, 18, 0), compute=40, exposed_comm=20, idle_latency=30)
        assert count(found, "file_repaired") >= 1

    def test_a_bare_word_is_quoted(self, document):
        """A fourth op, a copy of no length 10 after the last kernel, makes the span longer and nothing busy."""
        found = document("reconcile", "bare-na.json")
        totals(only_device(found), ops=4, busy=60, span=90, gaps=2)
        assert count(found, "file_repaired") == 1
        assert count(found, "zero_duration") == 1


class TestTruncatedAndOthers:
    """B23."""

    def test_a_cut_file_is_read_up_to_the_cut(self, document):
        """5 whole kernels of 20 every 30: busy 100, span 4 x 30 + 20, gaps of 10."""
        found = document("reconcile", "truncated.json")
        totals(only_device(found), ops=5, busy=100, span=140, gaps=4)
        assert "file_truncated" in codes(found)
        assert found["completeness"]["verdict"] == "unreliable"

    @pytest.mark.parametrize("name", ["truncated.json.gz", "metadata-only.json", "empty.json", "no-such-file.json"])
    def test_a_file_without_ops_is_refused_by_name(self, run, name):
        code, out, err = run("reconcile", name, "--format", "json")
        assert (code, out) == (2, "")
        assert name in err

    def test_inspect_works_without_ops(self, document):
        assert "device_without_ops" in codes(document("inspect", "metadata-only.json"))

    def test_a_second_document_is_told(self, document):
        found = document("reconcile", "two-ranks-one-file.json.gz")
        assert count(found, "second_document") == 1
        assert found["completeness"]["verdict"] == "partial"

    @pytest.mark.parametrize("name", ["invalid-utf8.json", "control-char.json"])
    def test_stray_bytes_are_replaced(self, document, name):
        found = document("reconcile", name)
        totals(only_device(found), ops=1, busy=20, span=20, gaps=0)
        assert "file_repaired" in codes(found)


class TestAwkwardNumbers:
    """B24."""

    def test_records_without_times_are_dropped(self, document):
        """100+40, 150+60, 220+30, 260+20, all launched before the first; its call 6, then 94: window 100 + 180.

        The three gaps of 10 are turnaround. Two rows with ts 0 and dur 0 are no ops.
        """
        found = document("reconcile", "ts0-dur0-old-layout.json")
        totals(only_device(found), ops=4, busy=150, span=180, gaps=3)
        accounts(only_device(found), 280, (6, 94, 30), compute=150, idle_latency=130)
        assert found["trace"]["time_resolution_ns"] == 1000
        assert count(found, "rows_dropped") == 2
        assert "coarse_timestamps" in codes(found)
        assert "op_without_launch" not in codes(found)

    def test_quoted_times_are_exact(self, document):
        """5.100 + 2.000 + 1.044; 0.100 between the first two, and no launch rows to say why."""
        found = document("reconcile", "string-ts.json")
        totals(only_device(found), ops=3, busy=8.144, span=8.244, gaps=1)
        accounts(only_device(found), 8.244, (0, 0, 0), compute=8.144, idle_unknown=0.1)
        assert count(found, "op_without_launch") == 3

    def test_an_id_beyond_64_bits_is_no_obstacle(self, document):
        device = only_device(document("reconcile", "int-over-int64.json"))
        totals(device, ops=1, busy=20, span=20, gaps=0)
        accounts(device, 30, (4, 6, 0), exposed_comm=20, idle_latency=10)

    def test_an_op_of_no_length_makes_no_gap(self, document):
        """0+20, 20+0, 20+10."""
        found = document("reconcile", "dur-zero.json")
        totals(only_device(found), ops=3, busy=30, span=30, gaps=0)
        accounts(only_device(found), 40, (4, 6, 0), compute=30, idle_latency=10)
        assert count(found, "zero_duration") == 1
        assert "impossible_overlap" not in codes(found)

    def test_a_negative_duration_is_left_out(self, document):
        """0+20 and 25+10 remain; the second, launched at 15 with the call over at 19, is turnaround of 5."""
        found = document("reconcile", "negative-dur.json")
        totals(only_device(found), ops=2, busy=30, span=35, gaps=1)
        accounts(only_device(found), 45, (4, 6, 5), compute=30, idle_latency=15)
        assert count(found, "negative_duration") == 1

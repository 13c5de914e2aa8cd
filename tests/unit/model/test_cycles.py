"""Periods of sequences of kernels, each kernel a letter."""

import numpy as np
import pytest

from traceaudit.model.cycles import anchor_positions, period_of


def codes(text):
    return np.array([ord(letter) for letter in text], np.int64)


@pytest.mark.parametrize(
    ("sequence", "period"),
    [
        ("abcdabcdabcd", 4),
        ("abbcabbcabbc", 4),
        ("aaaaaaaa", 1),
        ("abcdabcdab", 4),
        ("abcdefgh", None),
        ("", None),
        ("a", None),
        ("abcdaxyzaqrs", None),
    ],
)
def test_period(sequence, period):
    assert period_of(codes(sequence)) == period


def test_the_layers_of_a_deep_model_are_no_steps():
    """40 layers 'abcd' in a step that ends with 'xyz': the layers agree in 96 % of places, whole steps in all.

    One step is 40 x 4 + 3 = 163 kernels; a shift by 4 fails only around 'xyz', 7 of 163 places.
    """
    step = "abcd" * 40 + "xyz"
    found = codes(step * 4)
    assert np.mean(found[:-4] == found[4:]) > 0.95
    assert period_of(found) == 163


def test_a_lost_kernel_does_not_hide_the_period():
    """One of 120 kernels is missing: a shift by 10 fails in the 10 places around it, of 109."""
    step = "abcdefghij"
    found = codes(step * 5 + step[:4] + step[5:] + step * 6)
    assert np.mean(found[:-10] == found[10:]) == pytest.approx(99 / 109)
    assert period_of(found) == 10


def test_half_the_sequence_at_most():
    assert period_of(codes("abcab")) is None


def test_whole_cycles_begin_with_the_first():
    assert anchor_positions(codes("abcabcabc"), 3, np.zeros(9, np.int64)).tolist() == [0, 3, 6]


def test_the_longest_pause_begins_a_cycle():
    """The recording begins inside a cycle; the host pauses 90 before every 'c', 5 before the others."""
    sequence = "bcabcabcab"
    pause = np.array([90 if letter == "c" else 5 for letter in sequence], np.int64)
    assert anchor_positions(codes(sequence), 3, pause).tolist() == [1, 4, 7]


def test_only_what_occurs_once_a_cycle_begins_one():
    """Long pauses before 'x' do not count: it occurs twice a cycle. 'a' is at the usual distance, 'b' pauses less."""
    sequence = "xbxaxbxaxbxax"
    pause = np.array([{"x": 99, "b": 5, "a": 20}[letter] for letter in sequence], np.int64)
    assert anchor_positions(codes(sequence), 4, pause).tolist() == [3, 7, 11]


def test_a_kernel_at_another_distance_begins_none():
    """'a' has as many occurrences as cycles (2.5), but 2 apart; without another such kernel cycles are cut evenly."""
    assert anchor_positions(codes("axaxxxxxxx"), 4, np.zeros(10, np.int64)).tolist() == [0, 4, 8]

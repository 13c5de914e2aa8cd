import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.model.alignment import Block, align

tokens = st.lists(st.integers(0, 3), max_size=14)


def longest_common(left, right):
    """The textbook's table, as an oracle."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(tokens, tokens)
def test_what_lies_between_the_blocks_is_equal_and_as_long_as_can_be(base, head):
    kept_base, kept_head = list(base), list(head)
    for block in reversed(align(base, head)):
        del kept_base[block.base_start : block.base_end]
        del kept_head[block.head_start : block.head_end]
    assert kept_base == kept_head
    assert len(kept_base) == longest_common(base, head)


@given(tokens, tokens)
def test_seen_from_the_other_side_it_is_the_same_alignment(base, head):
    mirrored = tuple(Block(b.head_start, b.head_end, b.base_start, b.base_end) for b in align(head, base))
    assert align(base, head) == mirrored


def test_a_kernel_renamed_in_every_layer_gives_a_block_a_layer():
    blocks = align([1, 2, 3] * 12, [1, 9, 3] * 12)
    assert blocks == tuple(Block(3 * layer + 1, 3 * layer + 2, 3 * layer + 1, 3 * layer + 2) for layer in range(12))


def test_sequences_that_differ_too_much_are_not_aligned():
    assert align(list(range(10)), list(range(20, 30)), most=5) is None
    assert align(list(range(20, 30)), list(range(10)), most=5) is None


@pytest.mark.parametrize(("base", "head"), [([], []), ([1, 2], [1, 2])])
def test_equal_sequences_have_no_blocks(base, head):
    assert align(base, head) == ()


def test_everything_may_be_inserted():
    assert align([], [1, 2]) == (Block(0, 0, 0, 2),)

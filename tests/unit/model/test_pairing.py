from collections import Counter

import pytest
from comparisons import kernel, run, side

from traceaudit.model.pairing import pair_kernels


def pairs(base, head):
    found = pair_kernels(base, head)
    return [(names(pair.base), names(pair.head), pair.renamed, pair.group) for pair in found.pairs], [
        group.kind for group in found.groups
    ]


def names(keys):
    return sorted({name for name, _ in keys})


def layers(*names_of_layer, times=4, **us):
    """A run of `times` layers with these kernels in order."""
    counts = Counter(names_of_layer)
    kernels = [kernel(name, us.get(name, 10), launches=times * count) for name, count in counts.items()]
    return side(run(*kernels, sequence=list(names_of_layer) * times))


def test_equal_names_are_pairs():
    found, groups = pairs(layers("norm", "gemm"), layers("norm", "gemm"))
    assert found == [(["gemm"], ["gemm"], False, None), (["norm"], ["norm"], False, None)]
    assert groups == []


def test_a_kernel_in_anothers_place_was_renamed():
    found, groups = pairs(layers("norm", "gemm_64x8", "act"), layers("norm", "gemm_128x8", "act"))
    assert (["gemm_64x8"], ["gemm_128x8"], True, None) in found
    assert groups == []


def test_two_kernels_renamed_side_by_side_keep_their_order():
    found, _ = pairs(layers("norm", "q_old", "k_old", "act"), layers("norm", "q_new", "k_new", "act"))
    assert (["q_old"], ["q_new"], True, None) in found
    assert (["k_old"], ["k_new"], True, None) in found


def test_a_rename_needs_every_place_and_the_same_kind():
    base = layers("norm", "gemm", "act")
    mixed = side(
        run(
            kernel("norm", 10, launches=4),
            kernel("gemm_a", 10, launches=3),
            kernel("gemm_b", 10),
            kernel("act", 10, launches=4),
            sequence=["norm", "gemm_a", "act"] * 3 + ["norm", "gemm_b", "act"],
        )
    )
    found, groups = pairs(base, mixed)
    assert groups == ["replaced"]
    assert {row[3] for row in found if row[0] == ["gemm"] or row[1] in (["gemm_a"], ["gemm_b"])} == {0}
    copies = side(run(kernel("norm", 10), kernel("gemm_c", 10, kind="memcpy"), kernel("act", 10)))
    single = side(run(kernel("norm", 10), kernel("gemm", 10), kernel("act", 10)))
    assert pairs(single, copies)[1] == ["replaced"]


def test_several_kernels_in_ones_place_were_fused_and_the_other_way_round_split():
    apart, fused = layers("norm", "mul", "add", "act"), layers("norm", "mul_add", "act")
    found, groups = pairs(apart, fused)
    assert groups == ["fused"]
    assert {(tuple(row[0]), tuple(row[1])) for row in found if row[3] == 0} == {
        (("mul",), ()),
        (("add",), ()),
        ((), ("mul_add",)),
    }
    assert pairs(fused, apart)[1] == ["split"]


def test_a_kernel_of_both_sides_joins_the_group_that_takes_launches_from_it():
    # In base the addition runs twice a layer; in head one of them is part of the matrix multiplication.
    found, groups = pairs(layers("gemm", "add", "norm", "add"), layers("gemm_add", "norm", "add"))
    assert groups == ["fused"]
    assert (["add"], ["add"], False, 0) in found
    assert (["norm"], ["norm"], False, None) in found


def test_kernels_of_both_sides_alone_can_be_fused_into_a_new_one():
    found, groups = pairs(layers("mul", "add", "act", "mul"), layers("mul_add", "act", "mul"))
    assert groups == ["fused"]
    assert ([], ["mul_add"], False, 0) in found


def test_what_is_inserted_is_new_and_what_is_dropped_is_gone():
    found, groups = pairs(layers("norm", "gemm"), layers("norm", "extra", "gemm"))
    assert ([], ["extra"], False, None) in found
    assert groups == []
    assert (["extra"], [], False, None) in pairs(layers("norm", "extra", "gemm"), layers("norm", "gemm"))[0]


def test_shapes_of_one_kernel_are_apart_where_both_sides_have_the_same():
    one = side(run(kernel("copy", 5, blocks=64), kernel("copy", 9, blocks=512, launches=3)))
    assert len(pair_kernels(one, one).pairs) == 2


def test_a_grid_of_another_class_is_still_the_same_kernel():
    base, head = side(run(kernel("copy", 5, blocks=64))), side(run(kernel("copy", 9, blocks=512)))
    assert pairs(base, head)[0] == [(["copy"], ["copy"], False, None)]


def test_shapes_that_come_and_go_are_one_kernel():
    small = kernel("attention", 5, blocks=64)
    growing = kernel("attention", 9, blocks=512)
    changing = side(run(small, growing), run(small))
    found = pair_kernels(changing, changing)
    assert [len(pair.base) for pair in found.pairs] == [2]


def test_seen_from_the_other_side_the_pairs_are_the_same():
    base, head = layers("norm", "mul", "add", "old"), layers("norm", "mul_add", "new", "extra")
    forward, backward = pair_kernels(base, head), pair_kernels(head, base)
    assert {(p.base, p.head, p.renamed, p.group) for p in forward.pairs} == {
        (p.head, p.base, p.renamed, p.group) for p in backward.pairs
    }


SILU, MUL = "vectorized_elementwise_kernel<8, silu_kernel>", "vectorized_elementwise_kernel<8, MulFunctor<float> >"
FUSED = "triton_poi_fused__unsafe_view_mul_silu_9"


def test_a_kernel_that_left_its_place_empty_was_fused_into_one_close_by_that_names_its_ops():
    """The multiplication stands where the fused kernel does, the activation two kernels before: 8 launches become 4."""
    base, head = layers("gate", SILU, "up", MUL, "down"), layers("gate", "up", FUSED, "down")
    found, groups = pairs(base, head)
    assert groups == ["fused"]
    assert {(tuple(row[0]), tuple(row[1])) for row in found if row[3] == 0} == {
        ((SILU,), ()),
        ((MUL,), ()),
        ((), ("triton_poi_fused__unsafe_view_mul_silu",)),
    }
    assert pairs(head, base)[1] == ["split"]


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (("gate", "vectorized<gelu_kernel>", "up", MUL, "down"), ("gate", "up", FUSED, "down")),  # another op
        (
            (SILU, "a", "b", "c", "gate", "up", MUL, "down"),
            ("a", "b", "c", "gate", "up", FUSED, "down"),
        ),  # five kernels away
        ((SILU, "gate", "up", FUSED), ("gate", "up", FUSED)),  # both sides have the fused one
        ((SILU, "gate", SILU, "up", MUL, "down"), ("gate", "up", FUSED, "down")),  # twice as often
    ],
)
def test_a_kernel_is_gone_where_name_place_or_number_speak_against_fusion(base, head):
    found, groups = pairs(layers(*base), layers(*head))
    assert groups == []
    assert [row[3] for row in found if row[1] == []] == [None]

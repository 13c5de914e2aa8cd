from comparisons import kernel, run, side

from traceaudit.model.variants import placed_like

WHERE = "triton_poi_fused_where"


def step(*items):
    """A side whose step runs these kernels in order; ``("where", number, place)`` is one that has a number."""
    kernels, order = {}, []
    for item in items:
        name = item if isinstance(item, str) else f"{WHERE}_{item[0]}"
        place = None if isinstance(item, str) else item[1]
        kernels[name] = kernel(name, 10, launches=items.count(item), place=place)
        order.append(name)
    return side(run(*kernels.values(), sequence=order))


def places(found):
    """The place of each numbered kernel by its name."""
    return {item.name: item.key[0].removeprefix(WHERE) for item in found.runs[0].kernels if WHERE in item.key[0]}


def test_sides_without_numbers_stay_as_they_are():
    head = step("norm", "gemm")
    assert placed_like(step("norm"), head) is head


def test_kernels_are_matched_by_where_they_stand_whatever_their_numbers():
    """Base: 6 before the product, 7 after it. In head those are 2 and 9, and 9 was launched first, before the norm."""
    base = step("norm", (6, 1), "gemm", (7, 2), "act", (7, 2), "end")
    head = step((2, 1), "gemm", (9, 2), "act", (9, 2), "end")
    assert places(placed_like(base, head)) == {f"{WHERE}_2": "#1", f"{WHERE}_9": "#2"}
    swapped = step("norm", (6, 2), "gemm", (7, 1), "act", (7, 1), "end")
    assert places(placed_like(base, swapped)) == {f"{WHERE}_6": "#1", f"{WHERE}_7": "#2"}


def test_a_kernel_that_base_lacks_has_a_place_of_its_own():
    """The first of three is new: the others keep the places that they have in base."""
    base = step("norm", (6, 1), "gemm", (7, 2), "end")
    head = step((0, 1), "start", "norm", (6, 2), "gemm", (7, 3), "end")
    assert places(placed_like(base, head)) == {f"{WHERE}_0": "#3", f"{WHERE}_6": "#1", f"{WHERE}_7": "#2"}


def test_one_of_base_is_the_one_of_several_that_stands_in_its_place():
    base = step("norm", (6, None), "gemm", "end")
    head = step("norm", (1, 1), "gemm", (2, 2), "end")
    assert places(placed_like(base, head)) == {f"{WHERE}_1": "", f"{WHERE}_2": "#1"}


def test_as_many_left_over_on_both_sides_are_matched_in_order():
    base, head = step("a", (1, 1), "b", (2, 2)), step((3, 1), (4, 2), "c", "d")
    assert set(places(placed_like(base, head)).values()) == {"#1", "#2"}


def test_programs_too_different_to_align_are_matched_in_order():
    base = step(*(f"old_{number}" for number in range(1100)), (1, 1), (2, 2))
    head = step((3, 1), (4, 2), *(f"new_{number}" for number in range(1100)))
    assert places(placed_like(base, head)) == {f"{WHERE}_3": "#1", f"{WHERE}_4": "#2"}

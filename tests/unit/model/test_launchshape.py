import pytest

from traceaudit.model.launchshape import LaunchShape, resident_blocks, waves


@pytest.mark.parametrize(
    ("shape", "capability", "expected"),
    [
        # 2048 threads / 1024
        (LaunchShape(block=(1024, 1, 1), registers=32), (9, 0), 2),
        # 168 registers x 32 = 5376 a warp, 65536 // 5376 = 12 warps, 4 a block
        (LaunchShape(block=(128, 1, 1), registers=168), (9, 0), 3),
        # 228 kB / (100 kB + 1 kB)
        (LaunchShape(block=(128, 1, 1), registers=32, shared_mem=100 << 10), (9, 0), 2),
        # at most 16 blocks on 8.6
        (LaunchShape(block=(32, 1, 1), registers=16, shared_mem=0), (8, 6), 16),
        # no reserve before 8.0
        (LaunchShape(block=(64, 1, 1), registers=16, shared_mem=0), (7, 0), 32),
        (LaunchShape(block=(128, 1, 1), registers=0, shared_mem=0), (9, 0), 16),
    ],
)
def test_resident_blocks_by_the_tightest_limit(shape, capability, expected):
    assert resident_blocks(shape, capability) == expected


@pytest.mark.parametrize(
    ("shape", "capability"),
    [
        (LaunchShape(block=(128, 1, 1), registers=32), None),
        (LaunchShape(block=(128, 1, 1), registers=32), (3, 5)),
        (LaunchShape(registers=32), (9, 0)),
        (LaunchShape(block=(128, 1, 1)), (9, 0)),
        (LaunchShape(block=(0, 1, 1), registers=32), (9, 0)),
        (LaunchShape(block=(128, 1, 1), registers=32, shared_mem=1 << 30), (9, 0)),
    ],
)
def test_unknown_limits_and_impossible_launches_give_nothing(shape, capability):
    assert resident_blocks(shape, capability) is None
    assert waves(shape, capability, 132) is None


def test_waves_are_blocks_over_what_the_device_holds():
    shape = LaunchShape((264, 2, 1), (1024, 1, 1), 32, 0)
    assert waves(shape, (9, 0), 132) == 528 / (132 * 2)
    assert waves(shape, (9, 0), None) is None
    assert waves(LaunchShape(None, (1024, 1, 1), 32, 0), (9, 0), 132) is None

"""The device table: exact look-up, never by part of a name, and no full peak for a share of a card."""

import pytest

from traceaudit.errors import UnknownHardwareError, UsageError
from traceaudit.model.hardware import Confidence, Peaks, devices, lookup, normalised

GIB = 1 << 30


@pytest.mark.parametrize(
    ("name", "key", "gbps"),
    [
        ("NVIDIA H200", "h200-sxm", 4800),
        ("NVIDIA H100 80GB HBM3", "h100-sxm", 3350),
        ("NVIDIA H100 PCIe", "h100-pcie", 2039),
        ("NVIDIA H100 NVL", "h100-nvl", 3938),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000-se", 1597),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtxpro6000-ws", 1792),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtxpro6000-maxq", 1792),
        ("AMD Instinct MI325 OAM", "mi325x", 6000),
        ("AMD Instinct MI250X/MI250", "mi250x-gcd", 1638),
    ],
)
def test_runtime_names_are_found_as_they_are(name, key, gbps):
    device = lookup(name)
    assert (device.key, device.mem_bw_gbs, device.matched_by) == (key, gbps, "name")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("h200", "h200-sxm"),
        ("NVIDIA_H100_80GB_HBM3", "h100-sxm"),
        ("RTX PRO 6000 Blackwell Server", "rtxpro6000-se"),
        ("geforce rtx 5090", "rtx5090"),
        ("Intel Arc B580 Graphics", "b580"),
        ("mi300x", "mi300x"),
        ("A10", "a10"),
        ("A10G", "a10g"),
        ("L4", "l4"),
    ],
)
def test_spelling_does_not_matter(name, key):
    device = lookup(name)
    assert (device.key, device.matched_by) == (key, "normalised name")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("NVIDIA H100", "NVIDIA H100 PCIe"),
        ("RTX PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        ("A100", "NVIDIA A100-SXM4-80GB"),
    ],
)
def test_a_name_that_begins_several_cards_is_refused_with_near_ones(name, near):
    with pytest.raises(UnknownHardwareError) as caught:
        lookup(name)
    assert near in str(caught.value.hint)
    assert "--peak-gbps" in str(caught.value.hint)


def test_a_name_like_no_other_gets_only_the_way_out():
    with pytest.raises(UnknownHardwareError) as caught:
        lookup("quux")
    assert str(caught.value.hint).startswith("give the peak by hand")


def test_no_name_means_two_cards():
    seen: dict[str, str] = {}
    for device in devices():
        for name in (device.key, device.product, *device.aliases, *device.names):
            assert seen.setdefault(normalised(name), device.key) == device.key


def test_a_mig_slice_never_has_the_cards_peak():
    with pytest.raises(UnknownHardwareError, match="MIG slice"):
        lookup("NVIDIA A100-SXM4-40GB MIG 1g.5gb")


def test_fewer_multiprocessors_or_less_memory_are_a_share():
    assert lookup("AMD Instinct MI300X", sms=304, memory_bytes=196592 << 20).key == "mi300x"
    with pytest.raises(UnknownHardwareError, match="38 multiprocessors"):
        lookup("AMD Instinct MI300X", sms=38)
    with pytest.raises(UnknownHardwareError, match="a share of it"):
        lookup("NVIDIA H200", sms=132, memory_bytes=71 * GIB)


def test_a_count_that_the_table_doubts_may_be_a_little_off():
    assert lookup("NVIDIA GB300", sms=160).key == "gb300"
    with pytest.raises(UnknownHardwareError):
        lookup("NVIDIA GB300", sms=80)


def test_a_nameless_card_is_found_by_what_it_is():
    device = lookup("AMD Radeon Graphics", sms=304, memory_bytes=196592 << 20, capability="9.4")
    assert (device.key, device.matched_by, device.confidence) == ("mi300x", "properties", Confidence.LOW)


def test_two_cards_alike_share_what_they_agree_on():
    """MI350X and MI355X: same bandwidth (8000 GB/s), other rates (2309.6 and 2516.6 TFLOP/s bf16)."""
    device = lookup("AMD Radeon Graphics", sms=256, memory_bytes=int(0.99 * 288 * GIB), capability="9.5")
    assert device.mem_bw_gbs == 8000
    assert "bf16" not in device.tflops
    assert "MI355X" in device.product


def test_cards_alike_with_other_bandwidth_are_not_guessed():
    """A40 (696 GB/s) and RTX A6000 (768) have the same capability, multiprocessors and memory."""
    with pytest.raises(UnknownHardwareError, match="may be any of"):
        lookup("NVIDIA Custom", sms=84, memory_bytes=int(0.95 * 48 * GIB), capability="8.6")


def test_properties_of_no_known_card_find_none():
    with pytest.raises(UnknownHardwareError, match="no peaks are known"):
        lookup("NVIDIA Custom", sms=1, memory_bytes=GIB, capability="9.9")


def test_every_row_says_where_it_is_from():
    for device in devices():
        assert device.source
        assert device.mem_bw_gbs > 0
        assert not set(device.tflops) - {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"}


def test_old_cards_have_no_bf16():
    assert "bf16" not in lookup("Tesla T4").tflops
    assert lookup("Tesla T4").tflops["fp16"] == 65


def test_low_confidence_doubts_everything():
    assert lookup("NVIDIA GB10").doubts("mem_bw_gbs")
    assert lookup("NVIDIA A10G").doubts("bf16")
    assert not lookup("NVIDIA A10G").doubts("mem_bw_gbs")


def test_numbers_given_by_hand_come_first():
    peaks = Peaks.of(lookup("NVIDIA H200"), gbps=4000, tflops=700)
    assert (peaks.mem_bw_gbs, peaks.rate(("fp8",)), peaks.uncertain) == (4000, 700, False)
    assert peaks.mem_bw_source == "--peak-gbps 4000"
    alone = Peaks.of(None, gbps=1900)
    assert (alone.name, alone.rate(("bf16",)), alone.tflops_source) == (None, None, None)
    assert "high confidence" in Peaks.of(lookup("NVIDIA H200")).mem_bw_source


def test_neither_device_nor_number_is_refused():
    with pytest.raises(UsageError, match="no device and no peak"):
        Peaks.of(None)

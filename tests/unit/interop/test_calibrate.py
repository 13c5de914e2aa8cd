"""The measurements' arithmetic, on a device that takes exactly a millisecond for each call."""

import json
import re
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import jsonschema
import pytest

from traceaudit.errors import ExitCode, MissingDataError
from traceaudit.interop.calibrate import calibrate
from traceaudit.report import Page, render
from traceaudit.report.calibration import machine_toml


class Tensor:
    def __init__(self, shape):
        self.shape = shape

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def element_size(self):
        return 4

    def amax(self):
        CLOCK.calls += 1

    def copy_(self, _):
        CLOCK.calls += 1

    def to(self, _):
        return self

    def t(self):
        return self

    def __matmul__(self, _):
        CLOCK.calls += 1


CLOCK = SimpleNamespace(calls=0)


class Event:
    def __init__(self, **_):
        self.at = 0

    def record(self):
        self.at = CLOCK.calls

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return float(end.at - self.at)  # ms: one for each call


def multiply(*_, **__):
    CLOCK.calls += 1


def no_such_type(*_, **__):
    raise RuntimeError("not on this device\nmore")


@pytest.fixture
def torch(monkeypatch):
    properties = SimpleNamespace(
        name="NVIDIA H200", multi_processor_count=132, total_memory=150_109_880_320, major=9, minor=0
    )
    cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_properties=lambda _: properties,
        device=lambda _: nullcontext(),
        empty_cache=lambda: None,
        Event=Event,
    )
    names = ("bfloat16", "float16", "float32", "float8_e4m3fn", "int8")
    fake = SimpleNamespace(
        __version__="9.9",
        cuda=cuda,
        inference_mode=nullcontext,
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False))),
        ones=lambda *shape, **_: Tensor(shape),
        randn=lambda *shape, **_: Tensor(shape),
        randint=lambda _low, _high, shape, **_: Tensor(shape),
        add=multiply,
        _scaled_mm=multiply,
        _int_mm=no_such_type,
        **dict.fromkeys(names),
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


@pytest.mark.usefixtures("torch")
def test_rates_are_bytes_and_flop_over_time():
    made = calibrate(repeats=2, elements=1_000_000, side=100)
    assert made.name == "NVIDIA H200"
    assert made.measured.endswith("torch 9.9, fastest of 2 repeats")
    # 4 MB a millisecond, twice that for a copy, three times for the triad
    assert made.gbps == pytest.approx({"read": 4.0, "copy": 8.0, "triad": 12.0})
    assert made.tflops == pytest.approx(dict.fromkeys(("bf16", "fp16", "tf32", "fp32", "fp8"), 0.002))
    assert made.skipped == {"int8": "not on this device"}
    assert made.peak_gbps == 4800.0


@pytest.mark.usefixtures("torch")
def test_reports():
    made = calibrate(repeats=1, elements=1_000_000, side=1000)
    text = render("calibrate", "table", made, Page(width=80))
    assert re.search(r"read +4\.0 ", text)
    assert "int8 left out: not on this device" in text
    assert "read_gbps = 4.0" in machine_toml(made)
    document = json.loads(render("calibrate", "json", made))
    assert document["gbps"]["triad"] == pytest.approx(12.0)
    from importlib.resources import files

    schema = json.loads(files("traceaudit.report").joinpath("schemas/calibrate.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)


def test_a_missing_device_is_no_bug(torch):
    torch.cuda.device_count = lambda: 0
    with pytest.raises(MissingDataError, match="0 devices"):
        calibrate()


def test_without_torch_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDataError) as caught:
        calibrate()
    assert caught.value.exit_code is ExitCode.INCONCLUSIVE
    assert caught.value.hint == "pip install torch"

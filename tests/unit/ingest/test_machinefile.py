import json

import pytest

from traceaudit.errors import ConfigError
from traceaudit.ingest.machinefile import read_machine
from traceaudit.model.hardware import lookup
from traceaudit.model.results.calibration import Calibration
from traceaudit.report.calibration import machine_toml


def test_what_calibrate_writes_is_read_back(tmp_path):
    made = Calibration(
        "NVIDIA H200",
        "2026-11-29, torch 2.11.0, fastest of 15 repeats",
        {"read": 4380.1, "copy": 4251.9, "triad": 4433.0},
        {"bf16": 742.3, "fp8": 1300.0},
        {"fp4": "no such type"},
        4800.0,
    )
    path = tmp_path / "h200.toml"
    path.write_text(machine_toml(made))
    machine = read_machine(str(path))
    assert (machine.name, machine.gbps, machine.tflops) == (made.name, made.gbps, made.tflops)
    peaks = machine.peaks(lookup("NVIDIA H200"))
    assert peaks.mem_bw_gbs == 4433.0
    assert (
        peaks.mem_bw_source
        == "machine file h200.toml, measured 2026-11-29, torch 2.11.0, fastest of 15 repeats, triad ceiling"
    )
    assert peaks.rate(["bf16"]) == 742.3


def test_architecture_files_of_tracelens_are_read(tmp_path):
    path = tmp_path / "mi300x.json"
    rates = {"matrix_bf16": 708, "matrix_fp8": 1273, "vector_bf16": 163, "matrix_fp64": 81}
    path.write_text(json.dumps({"name": "MI300X", "mem_bw_gbps": 5300, "max_achievable_tflops": rates}))
    machine = read_machine(str(path))
    assert (machine.name, machine.gbps, machine.tflops) == ("MI300X", {"any": 5300.0}, {"bf16": 708.0, "fp8": 1273.0})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[memory]\nread_gbps = 'fast'\n", 2),
        ("[memory]\nwrite_gbps = 3\n", 2),
        ("[memory]\nread_gbps = 3\n[tflops]\nfp7 = 3\n", 4),
        ("[memory]\nread_gbps = 3\n[tflops]\n\nbf16 = inf\n", 5),
    ],
)
def test_errors_name_the_line(tmp_path, text, line):
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_machine(str(path))
    assert caught.value.where.endswith(f"m.toml, line {line}")


@pytest.mark.parametrize(
    "text", ["", "[machine]\nname = 'a'\n", "[other]\na = 1\n", "memory = 3", "{", "{}", '{"mem_bw_gbps": 0}', "= 3"]
)
def test_files_without_a_bandwidth_are_refused(tmp_path, text):
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_machine(str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        read_machine(str(tmp_path / "none"))

import json

import pytest

from traceaudit.config import reconcile_options
from traceaudit.config.kernels import KernelFlags, kernel_options
from traceaudit.errors import ConfigError, UsageError
from traceaudit.model.kernelgroups import GroupBy
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.quantisation import KvDtype


def options(**flags):
    return kernel_options(KernelFlags(**flags), reconcile_options())


def test_a_packaged_model_with_its_batch():
    made = options(model="llama-3-8b", batch=4, context="512", tp=2, kv_dtype="fp8", weights_dtype="fp8")
    assert made.model.name == "Llama 3 8B"
    assert made.model.formats.of(Component.DENSE_FFN).name == "fp8"
    assert made.workload.contexts == (512,) * 4
    assert made.workload.kv_dtype is KvDtype.FP8
    assert (made.run.batch, made.run.context, made.run.tp) == (4, 512, 2)
    assert made.run.config["hidden_size"] == 4096


def test_a_configuration_file(tmp_path):
    path = tmp_path / "config.json"
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    path.write_text(json.dumps(config | {"intermediate_size": 128, "vocab_size": 1000}))
    made = options(model=str(path), context="100,200,300")
    assert made.model.name == "config.json"
    assert made.workload.contexts == (100, 200, 300)
    assert made.run.context == 200


def test_defaults_ask_for_nothing():
    made = options()
    assert (made.group_by, made.specs, made.model, made.shapes_from) == (GroupBy.NAME, (), None, None)
    assert (made.peaks.gbps, made.peaks.tflops, made.peaks.machine) == (None, None, None)


def test_peaks_by_hand_and_by_file(tmp_path):
    made = options(peak_gbps="456", peak_tflops="1.5K")
    assert (made.peaks.gbps, made.peaks.tflops) == (456.0, 1500.0)
    path = tmp_path / "m.toml"
    path.write_text("[memory]\nread_gbps = 4380.1\n")
    assert options(machine=str(path)).peaks.machine.gbps == {"read": 4380.1}


@pytest.mark.parametrize(
    "flags",
    [
        {"model": "llama-3-8b"},
        {"model": "llama-3-8b", "batch": 4},
        {"model": "llama-3-8b", "context": "512"},
        {"model": "llama-3-8b", "batch": 0, "context": "512"},
        {"model": "llama-3-8b", "batch": 2, "context": "1,2,3"},
        {"model": "llama-3-8b", "batch": 2, "context": "1", "tp": 3},
        {"model": "no-such-model", "batch": 2, "context": "1"},
        {"model": "llama-3-8b", "batch": 2, "context": "1", "kv_dtype": "fp7"},
        {"kv_dtype": "fp8"},
        {"peak_gbps": "fast"},
        {"peak_gbps": "-3"},
        {"machine": "m.toml", "peak_gbps": "3"},
    ],
)
def test_what_means_nothing_is_refused(flags):
    with pytest.raises(UsageError):
        options(**flags)


@pytest.mark.parametrize("flag", ["spec", "machine"])
def test_files_that_are_not_there_are_named(flag, tmp_path):
    with pytest.raises(ConfigError):
        options(**{flag: str(tmp_path / "none")})

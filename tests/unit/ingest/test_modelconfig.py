"""Reading a model's configuration from disk."""

import json

import pytest

from traceaudit.errors import ConfigError
from traceaudit.ingest.modelconfig import read_model_config


def test_a_file_or_its_folder(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "llama"}')
    assert read_model_config(str(file)) == read_model_config(str(tmp_path)) == {"model_type": "llama"}


def test_quantisation_beside_it(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    quant = read_model_config(str(tmp_path))["quantization_config"]
    assert quant == {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4"}}


def test_the_configurations_own_quantisation_comes_first(tmp_path):
    (tmp_path / "config.json").write_text('{"quantization_config": {"quant_method": "fp8"}}')
    (tmp_path / "hf_quant_config.json").write_text("{}")
    assert read_model_config(str(tmp_path))["quantization_config"] == {"quant_method": "fp8"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "is an array, not a JSON object"),
        ("null", "is null, not a JSON object"),
        ("", "is no JSON: the file is empty"),
        ("{", "is no JSON: the file ends early"),
        ('{"a": 1,\n b}', "is no JSON: line 2, column 2"),
        ("[" * 100_000, "is no JSON: it is nested too deeply"),
        ("\xff", "is no JSON"),
    ],
)
def test_what_is_no_configuration(tmp_path, content, message):
    file = tmp_path / "c.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=message):
        read_model_config(str(file))


def test_missing_and_monstrous_files(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        read_model_config(str(tmp_path))
    file = tmp_path / "big.json"
    with file.open("wb") as stream:
        stream.truncate(17 << 20)
    with pytest.raises(ConfigError, match=r"^more than 16 MiB"):
        read_model_config(str(file))

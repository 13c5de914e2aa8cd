"""Reading tensor sizes from headers that are written here byte by byte."""

import json

import pytest

from traceaudit.errors import ConfigError
from traceaudit.ingest.safetensors_headers import read_tensors


def write(path, header, *, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text)


def entry(size, start=0):
    return {"dtype": "F8_E4M3", "shape": [size], "data_offsets": [start, start + size]}


def test_sizes_come_from_offsets(tmp_path):
    write(tmp_path / "model.safetensors", {"__metadata__": {"format": "pt"}, "a": entry(5), "b": entry(7, 5)})
    tensors = read_tensors(str(tmp_path))
    assert [(t.name, t.dtype, t.shape, t.size_bytes) for t in tensors] == [
        ("a", "F8_E4M3", (5,), 5),
        ("b", "F8_E4M3", (7,), 7),
    ]
    assert read_tensors(str(tmp_path / "model.safetensors")) == tensors


def test_an_index_says_which_files_count(tmp_path):
    write(tmp_path / "model-1.safetensors", {"a": entry(5)})
    write(tmp_path / "consolidated.safetensors", {"a": entry(5)})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert [t.name for t in read_tensors(str(tmp_path))] == ["a"]
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}))
    with pytest.raises(ConfigError, match=r"1 of 2 files .* 'model-2.safetensors'"):
        read_tensors(str(tmp_path))
    index.write_text(json.dumps({"weight_map": {"a": "../x.safetensors"}}))
    with pytest.raises(ConfigError, match="outside its folder"):
        read_tensors(str(tmp_path))
    index.write_text("{}")
    with pytest.raises(ConfigError, match="no weight_map"):
        read_tensors(str(tmp_path))


def test_without_an_index_the_models_own_files_come_first(tmp_path):
    write(tmp_path / "consolidated.safetensors", {"c": entry(1)})
    assert [t.name for t in read_tensors(str(tmp_path))] == ["c"]
    write(tmp_path / "model.safetensors", {"m": entry(1)})
    assert [t.name for t in read_tensors(str(tmp_path))] == ["m"]


@pytest.mark.parametrize(
    ("header", "length", "message"),
    [
        ({"a": entry(1)}, 10**9, "does not begin like safetensors"),
        ({"a": entry(1)}, 0, "does not begin like safetensors"),
        ({"a": entry(1)}, 5000, "ends early"),
        (b"nonsense", None, "is no JSON"),
        (b"[]", None, "no JSON object"),
        ({"a": {"dtype": "BF16"}}, None, "has no dtype, shape or offsets"),
        ({"a": 3}, None, "has no dtype, shape or offsets"),
        ({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [3, 1]}}, None, "ends before it starts"),
    ],
)
def test_damaged_files_are_refused(tmp_path, header, length, message):
    write(tmp_path / "model.safetensors", header, length=length)
    with pytest.raises(ConfigError, match=message):
        read_tensors(str(tmp_path))


def test_no_files_at_all(tmp_path):
    with pytest.raises(ConfigError, match="no safetensors files"):
        read_tensors(str(tmp_path))

"""`roofline` from flags to report: the contract, the refusals, and the founding story's arithmetic."""

import json
from importlib.resources import files

import jsonschema
import pytest

V4 = ("--model", "deepseek-v4-flash", "--gpu", "RTX PRO 6000 Blackwell Server", "--context", "320", "--tp", "4")
LLAMA = ("--model", "llama-3-8b", "--gpu", "NVIDIA H200", "--batch", "1", "--context", "1024")


@pytest.fixture
def document(run):
    """Run `roofline` and return its checked JSON document."""

    def call(*args):
        code, out, err = run("roofline", *args, "--format", "json")
        assert (code, err) == (0, "")
        schema = json.loads(files("traceaudit.report").joinpath("schemas", "roofline.schema.json").read_text("utf-8"))
        found = json.loads(out)
        jsonschema.validate(found, schema)
        return found

    return call


@pytest.fixture
def config(tmp_path):
    """Write a small model's configuration and return its folder."""
    content = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 96,
        "vocab_size": 100,
        "torch_dtype": "bfloat16",
    }
    (tmp_path / "config.json").write_text(json.dumps(content))
    return tmp_path


def test_the_document_of_the_founding_case(document):
    """16 / 28 = 571.4 ms over 9.198 ms is 62; the napkin's 0.86 ms would have made it 664."""
    found = document(*V4, "--batch", "16", "--tokens-per-second", "28", "--concurrency", "16")
    assert (found["schema_version"], found["command"], found["peak_gbps"]) == (1, "roofline", 1597)
    assert found["measured_ns"] == 571_428_571
    assert found["gap_factor"] == pytest.approx(62.1, abs=0.1)
    assert found["floor_ns"]["expected"] == pytest.approx(9.198e6, rel=1e-3)
    per_gpu = found["per_gpu"]
    for bound in ("minimum", "expected", "maximum"):
        weights = [item[bound] for item in per_gpu["components"] if item["kind"] == "weights"]
        assert sum(weights) == per_gpu["weight_bytes"][bound]
    assert sum(item["expected"] for item in per_gpu["components"] if item["kind"] == "cache") == per_gpu["kv_bytes"]
    assert sum(per_gpu["flop_by_dtype"].values()) == per_gpu["flop"]


def test_the_batch_of_the_log_decides_and_the_other_reading_is_kept(document):
    """8 ran where 16 were offered: 8 / 28 = 285.7 ms, and 571.4 ms as the other reading."""
    found = document(*V4, "--batch", "8", "--tokens-per-second", "28", "--concurrency", "16")
    assert found["measured_ns"] == 285_714_286
    (other,) = found["gap"]["other_readings"]
    assert other["step_ns"] == 571_428_571
    assert "8 running / 28 tokens/s" in found["gap"]["numerator"]
    assert "at batch 8" in found["gap"]["denominator"]


def test_the_napkin(document):
    """13e9 x 4 / 8 / 4 = 1.625 GB; at 1.9 TB/s 0.855 ms, and 571.4 ms is 668 times that (664 from 0.86)."""
    found = document(
        "--params",
        "13B",
        "--bits",
        "4",
        "--tp",
        "4",
        "--peak-gbps",
        "1900",
        "--batch",
        "16",
        "--tokens-per-second",
        "28",
    )
    assert found["per_gpu"]["weight_bytes"]["minimum"] == 1_625_000_000
    assert found["floor_ns"]["minimum"] == 855_263
    assert found["floor_ns"]["compute"] is None
    assert found["gap_factor"] == pytest.approx(668, abs=1)
    assert (found["gpu"], found["experts"], found["workload"]["kv_dtype"]) == (None, None, None)


def test_a_measurement_below_the_floor_is_remarked(run, document):
    napkin = ("--params", "13B", "--bits", "4", "--gpu", "H200", "--wall-ms", "0.001")
    assert document(*napkin)["gap"]["remark"].startswith("measured below the floor: ")
    for form in ("table", "markdown"):
        assert "measured below the floor: " in " ".join(run("roofline", *napkin, "--format", form)[1].split())
    assert document(*napkin[:-1], "10")["gap"]["remark"] is None


def test_without_a_measurement_there_is_no_factor(document):
    found = document(*LLAMA)
    assert (found["measured_ns"], found["gap_factor"], found["gap"]) == (None, None, None)
    assert found["assumptions"]


def test_a_wall_clock(document):
    found = document(*LLAMA, "--wall-ms", "6.3")
    assert (found["measured_ns"], found["gap"]["measured_source"]) == (6_300_000, "--wall-ms 6.3")


def test_speculation(document):
    """16 x 2.5 / 100 = 400 ms a step; four tokens of each request in it."""
    found = document(
        *("--model", "deepseek-v3", "--gpu", "h200", "--batch", "16", "--context", "2048", "--tp", "8"),
        *("--draft-tokens", "3", "--accept-length", "2.5", "--tokens-per-second", "100"),
    )
    assert found["measured_ns"] == 400_000_000
    assert found["workload"]["tokens_per_request"] == 4
    assert found["experts"]["tokens"] == 64
    assert found["communication"]["messages"][0]["calls"] == 123


def test_files_and_checkpoints(document, config):
    """Attention has 64 x 64 x 2 + 2 x 64 x 16 = 10 240 weights a layer; 20 480 in the file take one byte each."""
    header = {
        "model.layers.0.self_attn.q_proj.weight": {"dtype": "F8_E4M3", "shape": [20480], "data_offsets": [0, 20480]}
    }
    text = json.dumps(header).encode()
    (config / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    card = ("--peak-gbps", "1000", "--peak-tflops", "100", "--batch", "2", "--context", "10,20")

    def attention(*args):
        parts = document(*args, *card)["per_gpu"]["components"]
        return next(item["expected"] for item in parts if item["name"] == "attention")

    assert attention("--model", config) == attention("--model", config / "config.json") == 40_960
    assert attention("--checkpoint", config) == attention("--model", config, "--checkpoint", config) == 20_480
    assert attention("--model", config, "--weights-dtype", "mxfp4") == 10_880
    found = document("--model", config, *card)
    assert found["workload"]["context"] == {"min": 10, "mean": 15.0, "max": 20}
    assert found["per_gpu"]["kv_bytes"] == 30 * 2 * 2 * 2 * 8 * 2
    assert document("--model", config, *card, "--kv-dtype", "fp8_e4m3")["per_gpu"]["kv_bytes"] == 30 * 2 * 2 * 2 * 8
    assert document("--model", config, *card, "--kv-dtype", "auto")["workload"]["kv_dtype"] == "bf16"


def test_lengths_give_the_batch(document, config):
    assert document("--model", config, "--peak-gbps", "1", "--context", "1,2,3")["workload"]["batch"] == 3


def test_the_table(run):
    code, out, _ = run("roofline", *V4, "--batch", "8", "--tokens-per-second", "28", "--concurrency", "16")
    assert code == 0
    for text in (
        "DeepSeek-V4-Flash on RTX PRO 6000 Blackwell Server",
        "expected 9.39 GB 5.88 ms",
        "49x = step of 285.71 ms (8 running / 28 tokens/s)",
        "another reading: 571 ms (16 running / 28 tokens/s, if the offered concurrency ran), 97x",
        "routed experts",
        "not part of the floor",
    ):
        assert text in " ".join(out.split())
    assert max(len(line) for line in out.splitlines()) <= 100


def test_the_table_without_a_range(run):
    code, out, _ = run("roofline", *LLAMA, "--context", "100,200", "--batch", "2", "--draft-tokens", "1")
    assert code == 0
    assert "every weight and cached token is read once" in out
    assert "context 100 to 200 (mean 150)" in out
    assert "Measured" not in out


def test_markdown(run):
    code, out, _ = run("roofline", *V4, "--batch", "16", "--wall-ms", "571", "--format", "markdown")
    assert code == 0
    assert "| expected | 14.7 GB | 9.20 ms | tokens choose experts independently |" in out
    assert "<details><summary>Assumptions</summary>" in out
    assert run("roofline", *LLAMA, "--format", "markdown")[0] == 0


def test_a_file(run, tmp_path):
    target = tmp_path / "floor.json"
    code, out, _ = run("roofline", *LLAMA, "-o", target)
    assert (code, out) == (0, "")
    assert json.loads(target.read_text())["command"] == "roofline"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--gpu", "h200", "--batch", "1", "--context", "1"), "no model"),
        (("--model", "llama-3-8b", "--batch", "1", "--context", "1"), "no device and no peak"),
        (("--model", "llama-3-8b", "--gpu", "h200", "--context", "1"), "no --batch"),
        (("--model", "llama-3-8b", "--gpu", "h200", "--batch", "1"), "no --context"),
        (("--model", "llama-9-8b", "--gpu", "h200", "--batch", "1", "--context", "1"), "did you mean llama-3-8b"),
        (("--params", "13e9", "--gpu", "h200"), "go together"),
        (("--bits", "4", "--gpu", "h200"), "go together"),
        (("--params", "13e9", "--bits", "4", "--model", "x"), "without --model"),
        (("--params", "13e9", "--bits", "4", "--ep", "2", "--tp", "2"), "--ep needs --model"),
        (("--params", "13e9", "--bits", "4", "--kv-dtype", "fp8"), "--kv-dtype needs --model"),
        (("--params", "-1", "--bits", "4", "--gpu", "h200"), "--params is no positive number"),
        (("--params", "1e", "--bits", "4", "--gpu", "h200"), "--params is no positive number"),
        (("--params", "many", "--bits", "4", "--gpu", "h200"), "--params is no positive number"),
        ((*LLAMA, "--batch", "0"), "--batch must be at least 1"),
        ((*LLAMA, "--batch", "1000000000"), "is no step"),
        ((*LLAMA, "--context", "1,2"), "2 lengths for --batch 1"),
        ((*LLAMA, "--context", "long"), "no number of tokens"),
        ((*LLAMA, "--context", "-5"), "must be 0 or more"),
        ((*LLAMA, "--kv-dtype", "fp3"), "unknown cache type"),
        ((*LLAMA, "--weights-dtype", "fp3"), "unknown weight format"),
        ((*LLAMA, "--draft-tokens", "-1"), "--draft-tokens must be 0 or more"),
        ((*LLAMA, "--accept-length", "2"), "--accept-length 2 with 1 tokens"),
        ((*LLAMA, "--tp", "3"), "tp 3 does not divide"),
        ((*LLAMA, "--pp", "200"), "pp 200 is more than"),
        ((*LLAMA, "--concurrency", "3"), "alone does not state a step time"),
        ((*LLAMA, "--wall-ms", "1", "--tokens-per-second", "3"), "each state the step time"),
        ((*LLAMA, "--peak-gbps", "0"), "--peak-gbps is no positive number"),
        ((*LLAMA, "--checkpoint", "/nowhere"), "no safetensors files"),
        ((*LLAMA, "--format", "csv"), "'csv' is no choice"),
    ],
)
def test_what_makes_no_sense_is_refused(run, args, message):
    code, out, err = run("roofline", *args)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("name", ["h100", "RTX PRO 6000", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"])
def test_a_device_without_known_peak_is_inconclusive(run, name):
    code, out, err = run("roofline", *LLAMA, "--gpu", name)
    assert (code, out) == (3, "")
    assert "--peak-gbps" in err


def test_a_model_that_is_not_understood_is_refused(run, config):
    content = json.loads((config / "config.json").read_text()) | {"num_experts_per_tok": 2}
    (config / "config.json").write_text(json.dumps(content))
    code, _, err = run("roofline", "--model", config, "--gpu", "h200", "--batch", "1", "--context", "1")
    assert code == 2
    assert "without a number of experts" in err

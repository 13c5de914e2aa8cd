"""The command line from end to end: where bytes come from, and what is refused."""

import json
from pathlib import Path

import pytest

from traceaudit.cli.main import main

TRACES = Path(__file__).parents[2] / "traces"
EAGER, REPLAY = str(TRACES / "eager-decode.json.gz"), str(TRACES / "graph-decode.json.gz")


@pytest.fixture
def kernels(capsys):
    def run(*args):
        code = main(["kernels", *args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_rows_by_site_name_lines_of_the_model(kernels):
    code, out, _ = kernels(str(TRACES / "eager-decode-python-stacks.json.gz"), "--group-by", "site", "-f", "json")
    assert code == 0
    sites = {row["site"] for row in json.loads(out)["devices"][0]["kernels"]}
    assert any(site and site.startswith("decoder.py(") for site in sites)


def test_gains_say_what_removing_a_kernel_saves(kernels):
    _, out, _ = kernels(REPLAY, "--gains", "-f", "json")
    row = json.loads(out)["devices"][0]["kernels"][0]
    # A replay keeps the device busy, so that a kernel's time is nearly what its removal saves.
    assert row["save_ns"] == pytest.approx(row["per_step_ns"], rel=0.15)


def test_full_names_stand_below_the_table(kernels):
    name = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>"
    assert name not in kernels(REPLAY)[1].replace("\n", "")
    text = " ".join(kernels(REPLAY, "--full-names")[1].split())
    assert name in text


def test_a_trace_without_shapes_lends_none(kernels):
    code, out, err = kernels(REPLAY, "--shapes-from", REPLAY)
    assert (code, out) == (3, "")
    assert "no op of this trace has shapes" in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--model", "llama-3-8b"], "--context C is missing"),
        (["--spec", "nowhere.toml"], "nowhere.toml"),
        (["--peak-gbps", "0"], "--peak-gbps"),
        (["--group-by", "colour"], "colour"),
    ],
)
def test_what_means_nothing_is_refused(kernels, flags, words):
    code, out, err = kernels(REPLAY, *flags)
    assert (code, out) == (2, "")
    assert words in err

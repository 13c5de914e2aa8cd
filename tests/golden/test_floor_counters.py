"""The floor's bytes against hardware counters: a whole step of our recordings, within 3 %, as the page shows it."""

import csv
import gzip
import json
import re
import tomllib
from pathlib import Path

import pytest

from traceaudit.cli.main import main

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "traces"
INPUTS = Path(__file__).parent / "inputs"
PAGE = ROOT / "docs" / "commands" / "roofline.md"
TABLE = re.compile(r"(?<=<!-- counters -->\n).*?(?=<!-- /counters -->)", re.DOTALL)
MOST = 0.03

DENSE = (str(INPUTS / "recorder-decoder.json"), 16, 2048)
EXPERTS = (str(TRACES / "founding" / "config.json"), 8, 512)
STEPS = {
    "eager-decode-step": ("dense decoder, launched op by op", *DENSE),
    "graph-decode-step": ("dense decoder, replayed from a graph", *DENSE),
    "moe-decode-step": ("decoder with experts", *EXPERTS),
}


def counted(name):
    """Return the DRAM bytes that all kernels of the step read."""
    with gzip.open(TRACES / "ncu" / f"{name}-cache-none.csv.gz", "rt") as stream:
        return sum(int(row["dram_read_bytes"]) for row in csv.DictReader(stream))


def experts_read(name):
    """Return how many experts each layer of the counted step read, None for a dense model."""
    manifest = tomllib.loads((TRACES / "MANIFEST.toml").read_text())
    entry = next(one for one in manifest["counters"] if one["file"] == f"ncu/{name}-cache-none.csv.gz")
    return entry.get("experts_read_by_layer")


@pytest.fixture
def floor(capsys):
    def call(name):
        _, config, batch, context = STEPS[name]
        args = ("--model", config, "--gpu", "NVIDIA H200", "--batch", batch, "--context", context, "--format", "json")
        assert main(["roofline", *map(str, args)]) == 0
        return json.loads(capsys.readouterr().out)

    return call


def expected_bytes(found):
    return found["per_gpu"]["weight_bytes"]["expected"] + found["per_gpu"]["kv_bytes"]


def bytes_of_the_choice(found, name):
    """Return the floor's bytes with the experts that the counted step read, each as large as the expectation says."""
    (routed,) = [one for one in found["per_gpu"]["components"] if one["name"] == "routed_experts"]
    layers, experts = found["experts"]["layers"], found["experts"]["expected"]
    each = routed["expected"] / (layers * experts)
    return expected_bytes(found) - routed["expected"] + each * sum(experts_read(name))


@pytest.mark.parametrize("name", STEPS)
def test_the_expected_floor_reads_what_the_counters_saw(floor, name):
    assert expected_bytes(floor(name)) == pytest.approx(counted(name), rel=MOST)


def test_with_the_experts_that_ran_the_floor_is_closer_still(floor):
    name = "moe-decode-step"
    assert bytes_of_the_choice(floor(name), name) == pytest.approx(counted(name), rel=0.01)


def test_the_floor_is_below_the_counters(floor):
    """It is a lower bound: what it leaves out was read as well."""
    for name in STEPS:
        found = floor(name)
        least = expected_bytes(found) if experts_read(name) is None else bytes_of_the_choice(found, name)
        assert least <= counted(name)


def test_the_page_shows_the_table(floor, request):
    lines = ["| step | floor, expected | DRAM read, counted | floor / counted |", "| --- | ---: | ---: | ---: |"]
    for name, (what, *_) in STEPS.items():
        found, seen = floor(name), counted(name)
        rows = [(what, expected_bytes(found))]
        if experts_read(name) is not None:
            rows.append((f"{what}: with the experts that the step read", bytes_of_the_choice(found, name)))
        lines += [
            f"| {label} | {size / 1e6:,.1f} MB | {seen / 1e6:,.1f} MB | {size / seen:.4f} |" for label, size in rows
        ]
    table = "\n" + "\n".join(lines) + "\n\n"
    text = PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        PAGE.write_text(TABLE.sub(lambda _: table, text), encoding="utf-8")
    else:
        assert TABLE.search(text)[0] == table

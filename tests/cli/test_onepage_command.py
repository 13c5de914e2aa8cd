"""`reconcile` with a log or a model, and `roofline` with a trace: what comes from where, and what is refused."""

import gzip
import json
from importlib.resources import files
from pathlib import Path

import founding
import jsonschema
import pytest

TRACES = Path(__file__).parents[2] / "traces"
EAGER = TRACES / "eager-decode.json.gz"
CONFIG = Path(__file__).parents[1] / "golden" / "inputs" / "recorder-decoder.json"
V4 = ("--model", "deepseek-v4-flash", "--tp", "4")
SERVER_CARD = "RTX PRO 6000 Blackwell Server"


@pytest.fixture
def case(tmp_path, monkeypatch):
    """Write the founding case and work in its folder."""
    monkeypatch.chdir(tmp_path)
    founding.write_trace(tmp_path)
    founding.write_log(tmp_path)
    return tmp_path


@pytest.fixture
def document(run):
    """Run a command and return its JSON document, checked by the published schema."""

    def call(command, *args):
        code, out, err = run(command, *args, "--format", "json")
        assert (code, err) == (0, "")
        schema = json.loads(files("traceaudit.report").joinpath("schemas", f"{command}.schema.json").read_text("utf-8"))
        found = json.loads(out)
        jsonschema.validate(found, schema)
        return found

    return call


@pytest.fixture
def refused(run):
    def call(*args, code=2):
        found, out, err = run(*args)
        assert (found, out) == (code, "")
        return err

    return call


def test_without_log_and_model_the_fields_are_there_and_null(document):
    found = document("reconcile", EAGER)
    assert all(
        found[name] is None for name in ("step_time", "server", "floor", "no_floor", "kernels", "gain", "decision")
    )


@pytest.mark.usefixtures("case")
def test_a_log_alone_gives_step_and_batch(document):
    found = document("reconcile", "decode.json", "--server-log", "server.log")
    assert (found["server"]["steady_batch"], found["server"]["asked"], found["floor"]) == (8, None, None)
    assert found["step_time"]["wall_ns"] == 285_714_286
    assert found["server"]["trace_batch"] == 8


@pytest.mark.usefixtures("case")
def test_a_model_alone_takes_device_and_batch_from_the_trace(document):
    found = document("reconcile", "decode.json", *V4, "--context", "320")
    floor = found["floor"]
    assert (floor["gpu_source"], floor["batch_source"]) == ("the trace", "the names of the steps")
    assert (floor["gpu"], floor["workload"]["batch"]) == (SERVER_CARD, 8)
    assert (found["server"], found["step_time"]["wall_ns"]) == (None, None)


@pytest.mark.usefixtures("case")
def test_what_is_given_goes_before_the_trace(document):
    floor = document(
        *("reconcile", "decode.json", *V4, "--context", "320", "--batch", "4"),
        *("--gpu", "RTX PRO 6000 Blackwell Workstation"),
    )["floor"]
    assert (floor["gpu_source"], floor["batch_source"], floor["peak_gbps"]) == ("--gpu", "--batch", 1792)
    assert floor["workload"]["batch"] == 4


@pytest.mark.usefixtures("case")
def test_the_log_goes_before_the_batch_that_is_given(document):
    found = document("reconcile", "decode.json", "--server-log", "server.log", *V4, "--batch", "16")
    floor = found["floor"]
    assert (floor["workload"]["batch"], floor["batch_source"]) == (8, "the server's log, not --batch 16")
    assert (found["server"]["asked"], floor["asked"]["batch"]) == (16, 16)
    assert floor["workload"]["context"]["mean"] == 320


@pytest.mark.usefixtures("case")
def test_a_rate_needs_no_concurrency_with_a_log(document):
    found = document("reconcile", "decode.json", "--server-log", "server.log", "--tokens-per-second", "28")
    assert (found["step_time"]["wall_ns"], found["gain"]["tokens_per_second"]) == (285_714_286, 28.0)


@pytest.mark.usefixtures("case")
def test_a_measured_step_stands_beside_the_log(document):
    found = document("reconcile", "decode.json", "--server-log", "server.log", "--wall-ms", "300")
    assert found["step_time"]["wall_ns"] == 300_000_000
    assert 285_714_286 in {reading["step_ns"] for reading in found["server"]["readings"]}


def test_a_rate_of_a_step_with_a_known_batch_follows_from_the_wall(document):
    """The recorder's wall is the step; its steps carry no batch, so --batch does not make a rate either."""
    found = document("reconcile", EAGER, "--model", CONFIG, "--batch", "16", "--context", "2048")
    assert found["step_time"]["wall_source"].startswith("recorder")
    assert found["gain"]["tokens_per_second"] is None


@pytest.mark.parametrize("flag", [("--gpu", "H200"), ("--batch", "1"), ("--tp", "2"), ("--kv-dtype", "fp8")])
def test_options_of_the_model_need_a_model(refused, flag):
    assert f"{flag[0]} needs --model" in refused("reconcile", EAGER, *flag)


def test_nothing_tells_the_batch(refused):
    assert "nothing tells the batch" in refused("reconcile", EAGER, "--model", CONFIG, "--context", "2048")


def test_nothing_tells_the_context(refused):
    assert "no --context" in refused("reconcile", EAGER, "--model", CONFIG, "--batch", "16")


@pytest.mark.usefixtures("case")
def test_an_unknown_device_is_refused_before_the_trace_is_read(refused):
    assert "no peaks are known" in refused("reconcile", "absent.json", *V4, "--gpu", "RTX 6000 Bluewell", code=3)


@pytest.mark.usefixtures("case")
def test_a_file_that_is_no_log_is_refused(refused):
    Path("notes.txt").write_text("nothing of a server\n")
    assert refused("reconcile", "decode.json", "--server-log", "notes.txt")


@pytest.mark.usefixtures("case")
def test_several_logs_are_one_run(document, case):
    founding.write_log(case, name="part.log")
    found = document("reconcile", "decode.json", "--server-log", "server.log", "--server-log", "part.log")
    assert len(found["server"]["files"]) == 2


def test_the_way_from_the_floor_to_the_step(document):
    found = document("roofline", "--model", CONFIG, "--trace", EAGER, "--batch", "16", "--context", "2048")
    way = found["distance"]
    assert way["floor_ns"] + sum(part["time_ns"] for part in way["parts"]) == way["measured_ns"]
    assert way["floor_ns"] == pytest.approx(found["floor_ns"]["expected"] * way["steps"])
    assert way["measured_ns"] == found["measured_ns"] * way["steps"]
    assert found["assumptions"][0].startswith("step: mean of 4 steps")


def test_without_a_trace_there_is_no_way(document):
    args = ("--model", CONFIG, "--gpu", "NVIDIA H200", "--batch", "16", "--context", "2048")
    assert document("roofline", *args)["distance"] is None


def test_the_way_is_printed_in_every_form(run):
    args = ("roofline", "--model", CONFIG, "--trace", EAGER, "--batch", "16", "--context", "2048")
    code, table, _ = run(*args)
    assert code == 0
    assert "From the floor to the step" in table
    code, page, _ = run(*args, "--format", "markdown")
    assert code == 0
    assert "| from the floor to the step | took | floor | over floor |" in page


FOUNDING = TRACES / "founding"


def test_the_decision_stays_above_the_floor_of_its_batch(document):
    found = document(
        *("reconcile", FOUNDING / "admit-16.json.gz", "--server-log", FOUNDING / "admit-16.log"),
        *("--bench-result", FOUNDING / "admit-16.bench.jsonl", "--model", FOUNDING / "config.json"),
    )
    assert all(fix["step_ns"] >= found["floor"]["floor_ns"]["expected"] for fix in found["decision"])
    assert any(fix["floor_binds"] for fix in found["decision"])
    assert "unlike_runs" not in {finding["code"] for finding in found["completeness"]["findings"]}


def test_log_and_trace_of_two_runs_are_told_apart(document, run):
    args = (FOUNDING / "fixed.json.gz", "--server-log", FOUNDING / "fallback.log", "--model", FOUNDING / "config.json")
    found = document("reconcile", *args)
    texts = [finding["message"] for finding in found["completeness"]["findings"] if finding["code"] == "unlike_runs"]
    assert len(texts) == 2
    assert all(text.startswith("log and trace are not the same run: ") for text in texts)
    assert [fix["what"] for fix in found["decision"]] == ["take log and trace from the same run"]
    assert "log and trace are not the same run" in " ".join(run("reconcile", *args)[1].split())


def test_kernels_faster_than_their_floor_are_of_another_model(document, run):
    args = (TRACES / "graph-decode.json.gz", "--model", "llama-3-8b", "--batch", "16", "--context", "2048")
    found = document("reconcile", *args)
    assert {"over_peak", "unlike_runs"} <= {finding["code"] for finding in found["completeness"]["findings"]}
    assert [fix["kind"] for fix in found["decision"]] == ["record"]
    for command in (("reconcile", *args), ("roofline", *args[1:], "--trace", args[0])):
        assert "FASTER than their floor: matrix products" in " ".join(run(*command)[1].split())


def test_a_model_with_other_layers_is_told_by_every_command(document, run):
    """A dense decoder of 6 layers beside a mixture of experts of 4."""
    library = TRACES / "transformers"
    trace, args = library / "dense.json.gz", ("--batch", "8", "--context", "1024")
    text = "a step shows 6 attention kernels and the model has 4 layers"
    roofline = ("roofline", "--trace", trace, "--model")
    for command in (("kernels", trace, "--model"), ("reconcile", trace, "--model"), roofline):
        found = document(*command, library / "moe-config.json", *args)["completeness"]["findings"]
        assert any(finding["code"] == "unlike_runs" and text in finding["message"] for finding in found)
    for form in ("table", "markdown"):
        _, page, _ = run(*roofline, library / "moe-config.json", *args, "--format", form)
        assert "the model has 4 layers" in " ".join(page.split())
    fitting = document(*roofline, library / "dense-config.json", *args)["completeness"]["findings"]
    assert "unlike_runs" not in {finding["code"] for finding in fitting}
    in_stages = document(*roofline, library / "moe-config.json", *args, "--pp", "2")["completeness"]["findings"]
    assert "unlike_runs" not in {finding["code"] for finding in in_stages}


def test_without_a_trace_a_floor_has_no_verdict(document):
    args = ("--model", CONFIG, "--gpu", "NVIDIA H200", "--batch", "16", "--context", "2048")
    assert document("roofline", *args)["completeness"] is None


def test_a_trace_needs_a_model(refused):
    assert "--trace needs --model" in refused("roofline", "--params", "13e9", "--bits", "4", "--trace", EAGER)
    assert "no model" in refused("roofline", "--trace", EAGER, "--batch", "16", "--context", "2048")


def test_ranks_choose_from_a_trace(refused):
    args = ("--model", CONFIG, "--gpu", "NVIDIA H200", "--batch", "16", "--context", "2048", "--rank", "0")
    assert "--rank and --device choose from a trace" in refused("roofline", *args)


@pytest.fixture
def unlisted(tmp_path):
    """Write the founding case as of a device that the table lacks, and return the command's arguments."""
    with gzip.open(FOUNDING / "fallback.json.gz") as file:
        (tmp_path / "unlisted.json").write_bytes(file.read().replace(b"NVIDIA H200", b"NVIDIA Foo9000"))
    log, model = FOUNDING / "fallback.log", FOUNDING / "config.json"
    return ("reconcile", tmp_path / "unlisted.json", "--server-log", log, "--model", model)


def test_a_device_without_peaks_keeps_its_page(document, run, unlisted):
    found = document(*unlisted)
    known = document("reconcile", FOUNDING / "fallback.json.gz", *unlisted[2:])
    assert found["floor"] is None
    assert found["no_floor"]["reason"].startswith("'NVIDIA Foo9000' may be any of ")
    assert "--peak-gbps N" in found["no_floor"]["hint"]
    for part in ("step_time", "server"):
        assert found[part] == known[part]
    assert found["devices"][0]["ledger"] == known["devices"][0]["ledger"]
    assert [fix["kind"] for fix in found["decision"]][:1] == ["host"]
    assert {(one["name"], one["moved_bytes"]) for one in found["kernels"]} == {
        (one["name"], one["moved_bytes"]) for one in known["kernels"]
    }
    for form in ("table", "markdown"):
        code, page, err = run(*unlisted, "--format", form)
        assert (code, err) == (0, "")
        assert "unknown: 'NVIDIA Foo9000' may be any of" in " ".join(page.split())


@pytest.mark.parametrize(
    ("name", "source"), [((), "the trace"), (("--gpu", "NVIDIA Foo9000"), "--gpu")], ids=["trace", "gpu"]
)
def test_a_peak_by_hand_gives_the_floor_of_an_unlisted_device(document, unlisted, name, source):
    """Twice the bandwidth of the H200's 4800 GB/s halves a floor that memory binds."""
    found = document(*unlisted, *name, "--peak-gbps", "9600")
    known = document("reconcile", FOUNDING / "fallback.json.gz", *unlisted[2:])["floor"]
    floor = found["floor"]
    assert found["no_floor"] is None
    assert (floor["gpu"], floor["gpu_source"]) == ("NVIDIA Foo9000", f"{source}, peak by --peak-gbps")
    assert (floor["peak_gbps"], known["peak_gbps"]) == (9600, 4800)
    assert floor["floor_ns"]["memory"] * 2 == pytest.approx(known["floor_ns"]["memory"], abs=1)
    rated = [one for one in found["kernels"] if one["achieved_gbps"] is not None]
    assert rated
    assert all(one["peak_frac"] == pytest.approx(one["achieved_gbps"] / 9600) for one in rated)


def test_a_compute_peak_by_hand_keeps_the_bandwidth_of_the_device(document):
    args = ("--model", CONFIG, "--trace", EAGER, "--batch", "16", "--context", "2048")
    found, known = document("roofline", *args, "--peak-tflops", "1"), document("roofline", *args)
    assert found["peak_gbps"] == known["peak_gbps"]
    assert found["floor_ns"]["compute"] > known["floor_ns"]["compute"]


def test_a_floor_alone_of_a_device_without_peaks_is_refused(refused, unlisted):
    _, trace, _, _, *model = unlisted
    err = refused("roofline", "--trace", trace, *model, "--batch", "8", "--context", "512", code=3)
    assert "--gpu NAME says which device it is" in err

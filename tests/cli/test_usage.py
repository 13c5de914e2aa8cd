"""What a slip on the command line leads to: a message and a hint in the documented form, exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import samples


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("reconcil", "no such command: 'reconcil'", "did you mean reconcile?"),
        ("xyzzy", "no such command: 'xyzzy'", "take one of reconcile, kernels"),
        ("compare a b", "no such command: 'compare'", "take one of"),
        ("--foo", "no such option: --foo", "traceaudit --help"),
        ("reconcile", "missing argument 'PATH'", "traceaudit reconcile --help"),
        ("reconcile a b", "got unexpected extra argument", "traceaudit reconcile --help"),
        ("reconcile a --no-such", "no such option: --no-such", "traceaudit reconcile --help"),
        ("reconcile a --wall_ms 3", "no such option: --wall_ms", "did you mean --wall-ms?"),
        ("reconcile a --wall-ms", "option '--wall-ms' requires an argument", "traceaudit reconcile --help"),
        ("reconcile a --format yaml", "--format: 'yaml' is no choice", "take one of table, json, markdown, csv"),
        ("inspect a --format csv", "--format: 'csv' is no choice", "take one of table, json, markdown"),
        ("calibrate --format markdown", "--format: 'markdown' is no choice", "take one of table, json"),
        ("inspect a -o a.csv", "inspect has no csv report", "take one of table, json, markdown"),
        ("kernels a --group-by x", "--group-by: 'x' is no choice", "take one of name, shape, site"),
        ("reconcile a --rank one", "--rank: 'one' is not a whole number", "traceaudit reconcile --help"),
        ("reconcile a --rank -1", "--rank must be 0 or more", "they count from 0"),
        ("reconcile a --rank 99999999999999999999", "--rank must be at most", "they count from 0"),
        ("reconcile a --steps -1", "--steps must be at least 1", "give a whole number"),
        ("reconcile a --steps 99999999999999999999", "--steps must be at most 1000000000", "check the number"),
        ("reconcile a --wall-ms -1", "--wall-ms must be positive", "write it as 3.3"),
        ("reconcile a --wall-ms 1e30", "a step of more than 1e+09 ms: --wall-ms 1e30", "check the unit"),
        ("reconcile a --tokens-per-second 1e-20 --concurrency 1", "a step of more than 1e+09 ms", "check the unit"),
        ("whatif a --speedup nvjet=1e-300", "--speedup 'nvjet=1e-300': the factor is below 1e-06", "from 1e-6"),
        ("kernels a --tp 0", "--tp must be at least 1", "it counts GPUs"),
        ("roofline --model x --tp -1 --batch 1 --context 2", "--tp must be at least 1", "it counts GPUs"),
        ("roofline --model x --batch -1 --context 2", "--batch must be at least 1", "it counts the requests"),
        ("roofline --model x --batch 1 --context 2 --draft-tokens -1", "--draft-tokens must be 0", "give a whole"),
        ("serverlog a --load 0", "--load must be at least 1", "give a whole number"),
        ("serverlog a --expect-batch -2", "--expect-batch must be at least 1", "give a whole number"),
        ("calibrate --repeats 0", "--repeats must be at least 1, found 0", "15 take a few seconds"),
        ("calibrate --repeats 1000000", "--repeats must be at most 10000, found 1000000", "15 take a few seconds"),
        ("calibrate --device -1", "--device must be 0 or more, found -1", "they count from 0"),
        ("calibrate --save=", "--save is empty", "a shell variable that is not set"),
        ("calibrate --output=", "--output is empty", "a shell variable that is not set"),
        ("calibrate --save no/z.toml", "--save cannot be written: no such folder — no/z.toml", "check the path"),
        ("calibrate --save .", "--save cannot be written: it is a folder", "check the path"),
        ("calibrate -o no/z.json", "--output cannot be written: no such folder — no/z.json", "check the path"),
        ("reconcile a -o r.json.gz", "cannot tell the format from the ending '.gz' — r.json.gz", "--format says it"),
        ("kernels a -o r.md.gz", "cannot tell the format from the ending '.gz'", "--format says it"),
        (
            "inspect a -o r.pdf",
            "cannot tell the format from the ending '.pdf'",
            "--format says it; .txt, .log or",
        ),
        ("diff a b -o r.yaml", "cannot tell the format from the ending '.yaml'", "--format says it"),
        ("check a b -o r.csv", "cannot tell the format from the ending '.csv'", "--format says it"),
        ("check a b --allow=", "--allow is empty", "a shell variable that is not set"),
        ("diff a b --allow batch,", "--allow does not know ''", "take some of device"),
        ("kernels a --model x --batch 1 --context=", "--context is empty", "a shell variable that is not set"),
        ("roofline --params 1e9 --bits 4 --gpu H200 --context=", "--context is empty", "a shell variable"),
        ("roofline --model x --trace a --context=", "--context is empty", "a shell variable that is not set"),
        ("roofline --model x --trace a --peak-gbps=", "--peak-gbps", ""),
        ("roofline --model x --trace a --batch 0", "--batch must be at least 1", "it counts the requests"),
        (
            "roofline --model x --gpu H200 --batch 1 --context 2 --tokens-per-second 5 --concurrency 0",
            "--concurrency must be at least 1",
            "give a whole number",
        ),
        ("check a b --relative -1", "--relative must be a number of 0 or more", "for example"),
        ("kernels a --spec no.toml", "no such file — no.toml", "check --spec FILE"),
        ("kernels a --spec spek.toml", "no such file — spek.toml", "did you mean spec.toml?"),
        ("kernels a --machine no.toml", "no such file — no.toml", "check --machine FILE"),
        ("reconcile a --bench-result no.json", "no such file — no.json", "check --bench-result FILE"),
        ("kernels a --model . --batch 1 --context 2", "cannot read the model's configuration", "check the path"),
    ],
)
def test_form(run, tmp_path, monkeypatch, line, message, hint):
    monkeypatch.chdir(tmp_path)
    Path("spec.toml").touch()
    code, out, err = run(*line.split())
    assert (code, out) == (2, "")
    told, advice = err.splitlines()
    assert told.startswith(f"traceaudit: {message}")
    assert advice.startswith(f"hint: {hint}")


@pytest.mark.parametrize("factor", ["1e-6", "0.5", "2x", "inf"])
def test_factors_that_make_sense(run, monkeypatch, factor):
    seen = []
    monkeypatch.setattr("traceaudit.audit.whatif", lambda _path, options, **_: seen.append(options) or 1 / 0)
    run("whatif", "a", "--speedup", f"nvjet={factor}")
    assert seen[0].speedups[0].factor == float(factor.removesuffix("x"))


@pytest.mark.usefixtures("calls")
def test_the_longest_step(run):
    assert run("reconcile", "a", "--wall-ms", "1e9")[0] == 0
    assert run("reconcile", "a", "--wall-ms", "1000000001")[0] == 2


@pytest.mark.parametrize(
    ("command", "formats"),
    [
        *((name, "table, json, markdown or csv") for name in ("reconcile", "kernels", "gaps")),
        *((name, "table, json or markdown;") for name in ("inspect", "whatif", "roofline", "serverlog")),
        ("calibrate", "table or json;"),
    ],
)
def test_help_names_the_formats_of_the_command(run, command, formats):
    assert formats in " ".join(run(command, "--help")[1].split())


def test_a_rate_needs_no_concurrency_where_the_batch_is_known(run):
    assert "needs --concurrency" not in " ".join(run("roofline", "--help")[1].split())
    assert "needs --concurrency" in " ".join(run("reconcile", "--help")[1].split())


REPORT = f"""
import sys; sys.path.insert(0, {str(Path(samples.__file__).parent)!r})
import samples, traceaudit.audit as audit
audit.reconcile = lambda *_, **__: samples.graph_decode()
from traceaudit.__main__ import main
sys.exit(main())
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("args", [["reconcile", "a.json"], ["--help"], ["--version"], ["kernels", "--help"]])
def test_a_full_device_is_no_bug(args):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", REPORT, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    what = "the report" if args[0] == "reconcile" else "to standard output"
    told, advice = done.stderr.splitlines()
    assert told == f"traceaudit: cannot write {what}: No space left on device"
    assert advice.startswith("hint: ")


@pytest.mark.usefixtures("calls")
def test_a_closed_standard_output_is_no_bug(run, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    code, _, err = run("reconcile", "a.json")
    assert (code, err) == (2, "traceaudit: cannot write the report: standard output is closed\nhint: take -o FILE\n")


INTERRUPTED_IMPORT = """
import os, signal, sys
class Slow:
    def find_spec(self, name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Slow())
from traceaudit.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("name", ["traceaudit.cli.main", "typer", "traceaudit.cli.reconcile", "numpy"])
def test_an_interrupt_while_modules_load_is_quiet(name):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT.format(name=name), "reconcile", os.devnull],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("command", ["reconcile", "inspect"])
@pytest.mark.parametrize(
    ("flags", "told"),
    [("--rank 7", "--rank"), ("--device 7", "--device"), ("--rank 7 --device 7", "--rank and --device")],
)
def test_the_flags_that_match_no_device_are_named(run, command, flags, told):
    trace = Path(__file__).parents[2] / "traces" / "graph-decode.json.gz"
    code, _, err = run(command, trace, *flags.split())
    assert code == 2
    assert err.startswith(f"traceaudit: no device matches {told} — ")
    assert err.endswith("hint: the trace holds rank 0 device 0\n")


@pytest.mark.parametrize("command", ["reconcile", "gaps"])
def test_a_scheduler_that_no_row_names_is_refused(run, command):
    trace = Path(__file__).parents[2] / "traces" / "graph-decode.json.gz"
    code, out, err = run(command, trace, "--scheduler", "shedule")
    assert (code, out) == (2, "")
    assert err.startswith("traceaudit: no annotation or Python frame matches --scheduler 'shedule' — ")
    assert "hint: annotations in the trace: 'ProfilerStep#" in err

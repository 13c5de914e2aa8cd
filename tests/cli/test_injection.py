"""Hostile names through every command and format: in a trace, a server log, a model's configuration, in paths and
expressions.

`tests/unit/report/test_injection.py` tests renderers on results built by hand; here the texts come the way they would.
"""

import json
import re
from xml.etree import ElementTree as ET

import pytest
import serverlogs
from builders import TraceBuilder
from renderers import render

from traceaudit.cli.main import COMMANDS
from traceaudit.report import formats_of

NASTY = (
    "\x1b[31mred\x1b[0m\x07 [red]x[/red] <script>alert(1)</script>\r\n| a | `b` "
    "\u202e\x9b2J =1+1 @team ::error::x %0A \u2028"
)
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]")
OF_TRACES = [command for command in ("reconcile", "kernels", "inspect", "gaps", "whatif") if command in COMMANDS]
CASES = [(command, form) for command in OF_TRACES for form in formats_of(command)]


def hostile_trace(*, broken=False) -> bytes:
    """Return steps whose every text is hostile: markers, calls, ops, kernels, frames, the device; with rows lost as
    well.
    """
    trace = TraceBuilder(device=NASTY)
    for step in range(4):
        at = 1000 * step
        trace.annotation(f"step[{NASTY.replace(']', ')')} bs=8]", at=at, dur=990)
        trace.annotation(NASTY, at=at + 1, dur=300)
        trace.op(NASTY, at=at + 310, dur=100)
        trace.python(f"{NASTY}(12): {NASTY}", at=at + 420, dur=200)
        trace.launch(at=at + 640).kernel(f"void {NASTY}<int>()", at=at + 660, dur=100)
        trace.launch(at=at + 770).kernel(f"ncclDevKernel_{NASTY}", at=at + 790, dur=50, stream=20)
        trace.call(f"cuda{NASTY}", at=at + 850, dur=20)
        trace.call("cudaStreamSynchronize", at=at + 880, dur=60)
    if broken:
        del trace.ops[2]
        trace.orphan().kernel(NASTY, at=1500, dur=100)
        trace.ops[0].dur_ns = 0
    return render(trace)


@pytest.fixture
def hostile(tmp_path):
    """Write a trace under a hostile path."""
    path = tmp_path / NASTY.replace("/", "!").replace("\x00", "")
    path.mkdir()
    path /= "trace\x1b[2J<b>.json"
    path.write_bytes(hostile_trace(broken=True))
    return path


def check(text: str, form: str) -> None:
    """Check that a report holds nothing that its reader would obey."""
    assert not UNSAFE.search(text), repr(UNSAFE.search(text))
    if form == "json":
        json.loads(text)
    elif form == "markdown":
        outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
        assert "<script" not in outside
        assert "@team" not in outside
    elif form == "csv":
        assert not re.search(r'(?:^|,)"?[=+@]', text, re.MULTILINE)
    elif form == "junit":
        ET.fromstring(text)  # noqa: S314  (our own report)
    elif form == "github":
        assert all(line.startswith("::") for line in text.splitlines())
        assert not re.search(r"^::error::x", text, re.MULTILINE)


@pytest.mark.parametrize(("command", "form"), CASES)
def test_reports_on_hostile_traces(run, hostile, command, form):
    code, out, err = run(command, hostile, "--format", form)
    assert code in (0, 3), err
    check(out, form)
    check(err, "table")


@pytest.mark.parametrize(("command", "form"), CASES)
def test_hostile_names_are_shown(run, hostile, command, form):
    """Not hidden either: what can be shown of them is there."""
    _, out, _ = run(command, hostile, "--format", form)
    assert "alert" in out


@pytest.mark.parametrize("command", OF_TRACES)
def test_errors_about_hostile_input(run, hostile, command):
    for args in ((hostile.with_name(NASTY[:20].replace("/", "")),), (hostile, "--rank", "77")):
        code, out, err = run(command, *args)
        if command == "inspect" and len(args) > 1:
            continue
        assert (code, out) == (2, "")
        check(err, "table")


@pytest.mark.parametrize("command", [command for command in ("reconcile", "gaps") if command in COMMANDS])
def test_expressions_of_the_user(run, hostile, command):
    code, _, err = run(command, hostile, "--step-annotation", "\x1b[31mno such marker")
    assert code == 2
    check(err, "table")
    code, out, _ = run(command, hostile, "--step-annotation", "step.\x1b?")
    assert code == 0
    check(out, "table")


@pytest.mark.skipif("serverlog" not in COMMANDS, reason="no such command yet")
@pytest.mark.parametrize("form", formats_of("serverlog"))
def test_reports_on_hostile_logs(run, tmp_path, form):
    lines = [serverlogs.decode(second, 8, 400.0, extra=f", {NASTY!r}"[:40]) for second in range(30)]
    path = tmp_path / "server\x1b[31m<b>.log"
    text = "\n".join(lines).replace("\n", f"\n{NASTY}\n", 3)
    path.write_text(text, encoding="utf-8")
    code, out, err = run("serverlog", path, "--format", form, "--expect-batch", "16")
    assert code in (0, 3), err
    check(out, form)
    check(err, "table")


@pytest.mark.skipif("roofline" not in COMMANDS, reason="no such command yet")
@pytest.mark.parametrize("form", formats_of("roofline"))
def test_reports_on_hostile_models(run, tmp_path, form):
    config = {
        "architectures": [NASTY],
        "model_type": "llama",
        "_name_or_path": NASTY,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "vocab_size": 1000,
        "torch_dtype": "bfloat16",
        NASTY: NASTY,
    }
    folder = tmp_path / "model\x1b[31m<b>"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    args = (
        "--model",
        folder / "config.json",
        "--gpu",
        "NVIDIA H100 80GB HBM3",
        "--batch",
        "8",
        "--context",
        "512",
        "--format",
        form,
    )
    code, out, err = run("roofline", *args)
    assert code == 0, err
    check(out, form)
    check(err, "table")


@pytest.mark.skipif("check" not in COMMANDS, reason="no such command yet")
@pytest.mark.parametrize("form", formats_of("check"))
def test_comparisons_of_hostile_traces(run, hostile, tmp_path, form):
    other = tmp_path / "head.json"
    other.write_bytes(hostile_trace())
    code, out, err = run("check", hostile, other, "--format", form)
    assert code in (0, 1, 3), err
    check(out, form)
    check(err, "table")

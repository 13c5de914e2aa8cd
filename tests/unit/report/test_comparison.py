import json
import re
import xml.etree.ElementTree as ET
from importlib.resources import files

import jsonschema
import pytest
from comparisons import decode, kernel, run, side
from samples import NASTY

from traceaudit.analyses.diff import DiffOptions, diff
from traceaudit.analyses.gate import judge
from traceaudit.model.budget import Budget, KernelRule
from traceaudit.model.findings import Finding, Severity
from traceaudit.report import Page, formats_of, render

FORMATS = ("table", "json", "markdown", "junit", "github")
each_format = pytest.mark.parametrize("format_", FORMATS)
each_command = pytest.mark.parametrize("command", ["diff", "check"])


def times(count, *args, **options):
    return side(*(decode(*args, **options) for _ in range(count)))


def passing():
    return judge(diff(times(3), times(3, idle_us=10.001)))


def failing():
    budget = Budget(source="traceaudit.toml", kernels=(KernelRule("kernel[0]", 4, re.compile("gemm"), max_ns=1000.0),))
    return judge(diff(times(3), times(3, 1.10)), budget)


def inconclusive():
    return judge(diff(times(1), times(1, 1.03)))


def refused():
    return judge(diff(times(1, batch=16), times(1, batch=32)))


def fused():
    base = run(kernel("norm", 10), kernel("mul", 20), kernel("add", 30), kernel("old", 50), kernel("act", 10))
    head = run(kernel("norm", 10), kernel("mul_add", 70), kernel("act", 10), kernel("new", 50), kernel("end", 3))
    return judge(diff(side(base), side(head)))


def nasty():
    base = run(kernel(NASTY, 100), kernel("norm", 10), source=NASTY)
    head = run(kernel(NASTY, 200), kernel("norm", 10), kernel(f"{NASTY}2", 50), source=NASTY)
    finding = Finding("clock_skew", Severity.WARNING, NASTY, hint=NASTY)
    options = DiffOptions(allow=frozenset({"all"}))
    budget = Budget(source=NASTY, kernels=(KernelRule("kernel[0]", 4, re.compile("norm"), max_ns=1.0),))
    result = diff(side(base, base, base, label=NASTY), side(head, head, head, label=NASTY), options, (finding,))
    return judge(result, budget)


RESULTS = (passing, failing, inconclusive, refused, fused, nasty)
each_result = pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.__name__)


def test_every_format_is_registered():
    assert set(formats_of("diff")) == set(formats_of("check")) == set(FORMATS)


@each_command
@each_result
def test_json_keeps_the_contract(command, result):
    schema = json.loads((files("traceaudit.report") / "schemas" / f"{command}.schema.json").read_text())
    document = json.loads(render(command, "json", result()), parse_constant=pytest.fail)
    jsonschema.validate(document, schema)
    assert document["command"] == command


@each_format
@each_result
def test_nothing_that_a_trace_says_is_obeyed(format_, result):
    text = render("check", format_, result())
    assert text.endswith("\n")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    if format_ == "markdown":
        outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
        assert "<script" not in outside
        assert "@team" not in outside


@pytest.mark.parametrize("width", [72, 100, 120])
@each_result
def test_the_table_keeps_to_its_width(result, width):
    assert all(len(line) <= width for line in render("check", "table", result(), Page(width)).splitlines())


def test_the_verdict_comes_first():
    assert render("check", "table", failing()).splitlines()[1].startswith("FAIL  2 limits broken")
    assert render("check", "table", passing()).splitlines()[1].startswith("PASS  nothing grew beyond its limits")
    assert render("diff", "table", refused()).splitlines()[1].startswith("INCONCLUSIVE  the sides are not alike")
    assert render("check", "markdown", inconclusive()).startswith("### 🟡 traceaudit check: inconclusive\n")


def test_one_run_a_side_is_said_to_know_nothing_of_runs():
    for format_ in ("table", "markdown"):
        assert "One run a side" in render("check", format_, inconclusive())
        assert "One run a side" not in render("check", format_, passing())


def test_a_comment_shows_five_rows_and_folds_the_rest():
    text = render("check", "markdown", failing())
    shown, folded = text.split("<details>", 1)
    assert shown.count("| `") == 5
    assert shown.index("`gemm_0_kernel`") < shown.index("`gemm_1_kernel`")
    assert "5 more kernels" in folded


def test_groups_and_renames_are_told():
    text = render("diff", "table", fused())
    assert "fused" in text
    assert "mul_add" in text
    assert "called old before" in render(
        "diff",
        "markdown",
        judge(
            diff(
                side(run(kernel("a", 9), kernel("old", 9), kernel("b", 9))),
                side(run(kernel("a", 9), kernel("new", 9), kernel("b", 9))),
            )
        ),
    )


def test_junit_counts_failures_and_open_questions():
    root = ET.fromstring(render("check", "junit", failing()))  # noqa: S314  (our own text)
    (suite,) = root
    cases = {(case.get("classname"), case.get("name")): [child.tag for child in case] for case in suite}
    assert cases["traceaudit.verdict", "verdict"] == ["failure"]
    assert cases["traceaudit.kernel", "gemm_0_kernel"] == ["failure"]
    assert cases["traceaudit.kernel", "gemm_1_kernel"] == []
    assert cases["traceaudit.budget", "kernel[0].max_us"] == ["failure"]
    assert int(suite.get("failures")) == sum(tags == ["failure"] for tags in cases.values())
    root = ET.fromstring(render("check", "junit", inconclusive()))  # noqa: S314
    assert root[0].get("errors") == "2"
    assert "add + mul -&gt; mul_add" in render("diff", "junit", fused())


@each_result
def test_junit_is_xml_whatever_the_names(result):
    ET.fromstring(render("check", "junit", result()))  # noqa: S314


def test_annotations_point_at_the_budget():
    lines = render("check", "github", failing()).splitlines()
    assert lines[0].startswith("::error title=traceaudit check%3A fail::2 limits broken")
    assert any(line.startswith("::error file=traceaudit.toml,line=4,title=kernel[0].max_us::") for line in lines)
    assert render("check", "github", passing()).startswith("::notice title=traceaudit check%3A pass::")
    assert any(
        line.startswith("::warning title=unlike_runs::") for line in render("check", "github", refused()).splitlines()
    )


@each_result
def test_annotations_are_one_line_each(result):
    assert all(line.startswith("::") for line in render("check", "github", result()).split("\n")[:-1])


def test_long_lists_are_cut_and_counted():
    base = side(*(run(*(kernel(f"k{n}_kernel", 50) for n in range(40))) for _ in range(3)))
    head = side(*(run(*(kernel(f"k{n}_kernel", 50 + 10 * (n % 2), registers=n) for n in range(40))) for _ in range(3)))
    table = render("check", "table", judge(diff(base, head)))
    assert "25 more rows" in table
    assert "more; --format json lists" in table
    assert "- … and " in render("check", "markdown", judge(diff(base, head)))


def test_many_annotations_are_cut_to_what_is_shown():
    base = side(*(run(*(kernel(f"k{n}_kernel", 50) for n in range(40))) for _ in range(3)))
    head = side(*(run(*(kernel(f"k{n}_kernel", 50 + 10 * (n % 2)) for n in range(40))) for _ in range(3)))
    lines = render("check", "github", judge(diff(base, head))).splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 10


def host_bound():
    """Kernels of 100 µs and 900 µs of idle time: a window of 1 ms, whose noise is about its size."""
    return side(run(kernel("gemm", 100), idle_us=900.0))


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_noise_that_could_show_nothing_is_no_number(format_):
    result = judge(diff(host_bound(), side(run(kernel("gemm", 101), idle_us=880.0))))
    text = " ".join(render("diff", format_, result).split())
    step = result.diff.step
    assert step.noise_says_nothing
    assert step.effect.noise_ns > 500_000
    assert "noise too large: not judged" in text
    assert not result.diff.measure("op_time").noise_says_nothing
    document = json.loads(render("diff", "json", result))
    assert document["step"]["noise_says_nothing"] is True


def test_sides_that_were_not_compared_have_no_count_of_kernels():
    text = " ".join(render("diff", "table", refused()).split())
    assert "kernels not compared" in text
    assert "kernels new" not in text
    assert "kernels new 0, gone 0" in " ".join(render("diff", "table", passing()).split())


def test_kernels_of_groups_are_not_counted_as_new_or_gone():
    """`mul_add` took the place of three kernels; `new` and `end` are new."""
    assert "kernels new 2, gone 0, and those of 1 group" in " ".join(render("diff", "table", fused()).split())


def split(head_us=50):
    """A kernel of three classes of grids, copies of two sizes, and a kernel of one class."""

    def made(us):
        copy = {"kind": "memcpy", "grid": None, "block": None}
        return run(
            *(kernel("index_kernel", us, blocks=blocks) for blocks in (1, 96, 300)),
            *(kernel("Memcpy DtoD (Device -> Device)", 9, blocks=size, **copy) for size in (512, 5000)),
            kernel("gemm_kernel", 900, blocks=132),
        )

    return judge(diff(side(*[made(50)] * 3), side(*[made(head_us)] * 3)))


def test_rows_of_one_name_are_told_apart_by_the_size_of_their_launches():
    """Classes are powers of two: 96 blocks lie in 64 to 127, 300 in 256 to 511, 5 000 bytes in 4 096 to 8 191."""
    sizes = [" [1 block]", " [64-127 blocks]", " [256-511 blocks]"]
    names = {f"index_kernel{size}" for size in sizes} | {"gemm_kernel"}
    names |= {f"Memcpy DtoD (Device -> Device){size}" for size in (" [512-1,023 bytes]", " [4,096-8,191 bytes]")}
    for format_ in ("table", "markdown"):
        text = render("diff", format_, split(), Page(160))
        assert all(name in text for name in names)
        assert "gemm_kernel [" not in text
    suite = ET.fromstring(render("diff", "junit", split()))  # noqa: S314  (our own)
    assert {
        case.get("name") for case in suite.iter("testcase") if case.get("classname") == "traceaudit.kernel"
    } == names
    slower = render("check", "github", split(head_us=80))
    assert all(f"index_kernel{size}: +30.0 µs" in slower for size in sizes)


def test_json_gives_the_size_of_launches_of_each_row():
    rows = json.loads(render("diff", "json", split()))["kernels"]
    found = {(row["name"], *row["launch_size"].values()) for row in rows}
    copy = "Memcpy DtoD (Device -> Device)"
    assert found == {
        *(("index_kernel", "blocks", least, most) for least, most in ((1, 1), (64, 127), (256, 511))),
        *((copy, "bytes", least, most) for least, most in ((512, 1023), (4096, 8191))),
        ("gemm_kernel", "blocks", 128, 255),
    }


def test_a_long_name_keeps_what_tells_it_apart():
    name = f"at_{'x' * 200}_kernel"
    runs = [run(*(kernel(name, 50, blocks=blocks) for blocks in (96, 300)))] * 3
    text = render("diff", "markdown", judge(diff(side(*runs), side(*runs))))
    assert "… [64-127 blocks]" in text
    assert "… [256-511 blocks]" in text

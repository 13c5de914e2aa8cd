import re

import pytest

from traceaudit.errors import ConfigError
from traceaudit.model.bytes.operands import op_call
from traceaudit.model.kernelspec import Scope, expression

SCOPE = Scope(
    grid=(64, 2, 1),
    block=(128, 1, 1),
    call=op_call("aten::mm", b'{"Input Dims":[[16,32],[32,8]],"Input type":["float","float"]}'),
    batch=16,
    context=2048,
    tp=2,
    config={"hidden_size": 4096, "text_config": {"num_attention_heads": 32}},
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7_222_591_488", 7_222_591_488),
        ("2 * batch * context * 8 * 128 * 2", 2 * 16 * 2048 * 8 * 128 * 2),
        ("33.6 * MB", 33_600_000),
        ("4 * KiB + 1", 4097),
        ("grid[0] * block[0]", 8192),
        ("blocks * threads", 128 * 128),
        ("config.hidden_size / tp", 2048),
        ("config.num_attention_heads", 32),
        ("nbytes(0) + nbytes(1)", 16 * 32 * 4 + 32 * 8 * 4),
        ("dim(1, 1) * numel(0)", 8 * 512),
        ("min(batch, 4) ** 2 - -1", 17),
        ("ceil(7 / 2) + floor(7 / 2) + 7 // 2 + 7 % 2", 4 + 3 + 3 + 1),
    ],
)
def test_values(text, value):
    assert expression(text, "f").evaluate(SCOPE) == value


@pytest.mark.parametrize("text", ["batch", "grid[1]", "nbytes(0)", "config.hidden_size", "context"])
def test_what_is_not_known_gives_nothing(text):
    assert expression(text, "f").evaluate(Scope()) is None


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__",
        "open('f')",
        "(lambda: 1)()",
        "[1][0]",
        "batch.real",
        "'a' * 3",
        "x",
        "1 if batch else 2",
        "min(*grid)",
        "min()",
        "f'{batch}'",
        "config.a.b",
        "True",
        "1j",
        "",
        "1 +",
        "1;2",
        "x" * 600,
        "9 " * 400,
    ],
)
def test_other_constructs_are_refused(text):
    with pytest.raises(ConfigError) as caught:
        expression(text, "spec.toml, line 3")
    assert caught.value.where == "spec.toml, line 3"


@pytest.mark.parametrize(
    "text",
    ["1 / 0", "batch - 17", "9 ** 9 ** 9", "2 ** 64 * 2 ** 64", "grid", "grid[5]", "dim(0, 7)", "nbytes(9)", "1e400"],
)
def test_senseless_values_name_their_line(text):
    with pytest.raises(ConfigError) as caught:
        expression(text, "spec.toml, line 3").evaluate(SCOPE)
    assert caught.value.where == "spec.toml, line 3"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1e308 * 10", "a number grows too large"),
        ("1e308 * 10 - 1e308 * 10", "a number grows too large"),
        ("10 ** 60 * 10 ** 60 * 10 ** 60 * 10 ** 60 * 10 ** 60 * 10 ** 60", "a number grows too large"),
        ("(-8) ** 0.5", "the root of a negative number"),
        ("grid[5]", "number 5 of 3 sizes, counted from 0"),
    ],
)
def test_what_has_no_value_says_so_without_python(text, reason):
    with pytest.raises(ConfigError, match=re.escape(f"cannot evaluate {text!r}: {reason}")):
        expression(text, "spec.toml").evaluate(Scope(grid=(1, 2, 3)))


@pytest.mark.parametrize("text", ["ceil(1, 2)", "min(1)", "dim(0)", "numel(0, 1)"])
def test_functions_take_their_arguments(text):
    with pytest.raises(ConfigError, match="is not allowed in an expression"):
        expression(text, "spec.toml")

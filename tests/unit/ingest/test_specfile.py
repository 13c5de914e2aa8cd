import pytest

from traceaudit.errors import ConfigError
from traceaudit.ingest.specfile import read_spec
from traceaudit.model.kernelspec import Scope


def read(tmp_path, text):
    path = tmp_path / "spec.toml"
    path.write_text(text)
    return read_spec(str(path))


def test_numbers_units_and_expressions(tmp_path):
    specs = read(
        tmp_path,
        """
        # what one launch moves
        [[kernels]]
        match = '^fused_moe_kernel$'
        bytes = 7222591488
        flop = "12 GFLOP"

        [[kernels]]
        match = "attention"
        bytes = "2 * batch * MB"
        note = "as derived"

        [[kernels]]
        match = "copy"
        bytes = "33.5 MiB"
        """,
    )
    scope = Scope(batch=3)
    assert [spec.bytes.evaluate(scope) for spec in specs] == [7222591488, 6_000_000, 35_127_296]
    assert specs[0].flop.evaluate(scope) == 12_000_000_000
    assert specs[1].flop is None
    assert specs[1].where.endswith("spec.toml, line 8")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[[kernels]]\nmatch = 'a'\n", 1, "no bytes"),
        ("[[kernels]]\nbytes = 3\n", 1, "no match"),
        ("[[kernels]]\nmatch = '('\nbytes = 3\n", 2, "regular expression"),
        ("[[kernels]]\nmatch = 'a'\nbytes = -3\n", 3, "0 or more"),
        ("[[kernels]]\nmatch = 'a'\nbytes = true\n", 3, "neither a number"),
        ("[[kernels]]\nmatch = 'a'\nbytes = nan\n", 3, "0 or more"),
        ("[[kernels]]\nmatch = 'a'\nbytes = '3 GFLOP'\n", 3, "does not fit"),
        ("[[kernels]]\nmatch = 'a'\nbytes = 3\nflop = '3 GB'\n", 4, "does not fit"),
        ("[[kernels]]\nmatch = 'a'\n\nbytes = 'os.system'\n", 4, "not allowed"),
        ("[[kernels]]\nmatch = 'a'\nbytes = 1\n[[kernels]]\nmatch = 'b'\nbyte = 3\n", 6, "unknown key 'byte'"),
        ("[kernel]\nmatch = 'a'\n", 1, "unknown table"),
    ],
)
def test_errors_name_the_line(tmp_path, text, line, words):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert caught.value.where.endswith(f"spec.toml, line {line}")
    assert words in caught.value.message


@pytest.mark.parametrize("text", ["", "kernels = 3", "kernels = [3]", "[[kernels", "\x00"])
def test_files_that_are_none_are_refused(tmp_path, text):
    with pytest.raises(ConfigError):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read"):
        read_spec(str(tmp_path / "none.toml"))

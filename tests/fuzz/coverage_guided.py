"""Coverage-guided fuzzing of reading and reconciling, with atheris (Linux, Python up to what its wheels support).

Run ``pip install atheris`` and then ``python tests/fuzz/coverage_guided.py CORPUS -runs=100000 -max_len=8192``;
arguments go to libFuzzer. CORPUS is a folder, filled with small traces of every writer if it is empty; inputs that
reach new code are kept there. A crash leaves the input in the current folder, and ``python
tests/fuzz/coverage_guided.py FILE`` runs it again.
"""

import sys
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

import atheris  # noqa: E402

with atheris.instrument_imports(include=["traceaudit.ingest", "traceaudit.model"]):
    import traceaudit.ingest.reader  # noqa: F401

from fuzz.bases import SHAPES, build  # noqa: E402
from fuzz.oracle import run  # noqa: E402
from renderers import COARSE, WRITERS, compress, render  # noqa: E402


def seed_corpus(folder: Path) -> None:
    """Write small traces of every writer, plain and compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        return
    for writer in WRITERS:
        if writer in COARSE:
            continue
        for shape in SHAPES:
            data = render(build(shape, Random(shape)), writer)
            for how in ("plain", "gz", "zst"):
                if how == "plain" or shape == "single":
                    (folder / f"{writer}-{shape}-{how}").write_bytes(compress(data, how))


def one_input(data: bytes) -> None:
    """Read and reconcile one input; whatever is no report and no refusal comes out as an exception."""
    run(data)


if __name__ == "__main__":
    places = [Path(arg) for arg in sys.argv[1:] if not arg.startswith("-")]
    if places and not places[0].is_file():
        seed_corpus(places[0])
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()

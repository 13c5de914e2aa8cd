"""Record the traces of this folder, adopt them into the manifest, and verify it.

Verbs::

    python traces/record.py scenario graph-decode --context 4096 --out /tmp/recordings
    python traces/record.py counters eager-decode-step --cache-control none --out /tmp/recordings
    python traces/record.py adopt /tmp/recordings
    python traces/record.py verify
"""

import argparse
import shlex
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))


def main(arguments: list[str]) -> int:
    """Run one verb; return the exit status."""
    options = _parser().parse_args(arguments)
    return options.run_verb(options)


def _scenario(options: argparse.Namespace) -> int:
    from recorder.session import record_scenario

    record_scenario(options, command=_command())
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    from recorder.calibrate import calibrate
    from recorder.session import config_from

    print(*calibrate(config_from(options), options.percent))
    return 0


def _counters(options: argparse.Namespace) -> int:
    from recorder.profile_counters import record_counters

    record_counters(options, command=_command())
    return 0


def _counted(options: argparse.Namespace) -> int:
    from recorder.profile_counters import run_counted

    run_counted(options)
    return 0


def _adopt(options: argparse.Namespace) -> int:
    from recorder.manifest import adopt

    for name in adopt(FOLDER, options.source):
        print(name)
    return 0


def _verify(_options: argparse.Namespace) -> int:
    from recorder.manifest import verify

    problems = verify(FOLDER)
    print("\n".join(problems or ["all files as listed"]))
    return 1 if problems else 0


def _command() -> str:
    """Return this command line without the place that the files went to and the number of a run."""
    words = sys.argv[1:]
    for option in ("--out", "--run"):
        if option in words:
            at = words.index(option)
            words = words[:at] + words[at + 2 :]
    return shlex.join(["python", "traces/record.py", *words])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)

    scenario = verbs.add_parser("scenario", help="record one scenario, in this fresh process")
    scenario.add_argument("scenario")
    scenario.add_argument("--name", help="file name without suffix; the scenario's by default")
    scenario.add_argument("--series", help="name of a series of equal runs, instead of --name")
    scenario.add_argument("--run", type=int, default=1, help="number of the run in its series")
    scenario.add_argument("--description", help="for the manifest; the scenario's by default")
    scenario.add_argument("--out", type=Path, default=Path())
    scenario.add_argument("--device", default="cuda")
    scenario.add_argument("--steps", type=int, help="profiled steps")
    scenario.add_argument("--no-shapes", action="store_true", help="also where the scenario records op shapes")
    scenario.add_argument("--wall-steps", type=int, default=100)
    scenario.add_argument("--wall-repeats", type=int, default=7)
    scenario.add_argument("--sleep-ms", type=float, default=4.0)
    scenario.add_argument("--load-mb", type=float, default=24.0, help="host to device, each step")
    scenario.add_argument("--store-mb", type=float, default=8.0, help="device to host, each step")
    scenario.add_argument("--sync-every", type=int, default=4, help="layers between .item() calls")
    scenario.add_argument("--host-delay-us", type=float, default=0.0, help="before each step")
    scenario.add_argument("--graph", action="store_true", help="decode passes of the engine as one graph launch")
    scenario.add_argument("--clients", type=int, default=16, help="requests in flight at the engine")
    _add_decoder(scenario)
    scenario.set_defaults(run_verb=_scenario)

    calibration = verbs.add_parser("calibrate", help="print the extra rounds that slow attention by given shares")
    calibration.add_argument("--percent", type=float, nargs="+", required=True)
    _add_decoder(calibration)
    calibration.set_defaults(run_verb=_calibrate)

    from recorder.subjects import SUBJECTS

    for verb, run, text in (
        ("counters", _counters, "count memory traffic per kernel with ncu"),
        ("counted", _counted, "what counters runs under ncu"),
    ):
        counters = verbs.add_parser(verb, help=text)
        counters.add_argument("subject", choices=SUBJECTS)
        counters.add_argument("--cache-control", choices=("none", "all"), default="none")
        counters.add_argument("--out", type=Path, default=Path())
        counters.set_defaults(run_verb=run)

    adopt = verbs.add_parser("adopt", help="take recordings into this folder and the manifest")
    adopt.add_argument("source", type=Path)
    adopt.set_defaults(run_verb=_adopt)

    verbs.add_parser("verify", help="compare files and manifest").set_defaults(run_verb=_verify)
    return parser


def _add_decoder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", choices=("dense", "moe"), default="dense")
    parser.add_argument("--attention", choices=("sdpa", "triton"))
    parser.add_argument("--activation", choices=("torch", "fused", "renamed"))
    for field in (
        "layers",
        "batch",
        "context",
        "intermediate",
        "seed",
        "programs-per-head",
        "extra-rounds",
        "extra-kernels",
    ):
        parser.add_argument(f"--{field}", type=int)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Where the console script and ``python -m traceaudit`` begin."""

import os
import signal
import sys

__all__ = ["main"]

INTERRUPTED = 130


def main() -> int:
    """Run the command line; an interrupt ends it quietly even while its modules still load."""
    try:
        usual = signal.signal(signal.SIGINT, _leave)
        from traceaudit.cli.main import main as run

        signal.signal(signal.SIGINT, usual)
        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


def _leave(*_: object) -> None:
    # Nothing is written yet. An exception could end up in an import that turns it into another one.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())

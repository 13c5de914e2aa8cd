"""Run the command line as ``python -m traceaudit``."""

import sys

from traceaudit.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

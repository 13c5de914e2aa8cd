"""The command line: flags to options, results to reports and exit codes."""

"""Facts about a trace, and the arithmetic on them: tables, intervals, kinds, steps, results. No I/O."""

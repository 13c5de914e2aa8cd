"""Reports for a terminal, one module per command; `rich` is imported here and nowhere else."""

"""The only reader of settings: turns flags and files into options, and what makes no sense into errors."""

from traceaudit.config.common import SelectionFlags, StepFlags, WallFlags, reconcile_options, wall_of, whatif_options

__all__ = ["SelectionFlags", "StepFlags", "WallFlags", "reconcile_options", "wall_of", "whatif_options"]

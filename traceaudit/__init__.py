"""Audit PyTorch profiler traces of LLM decode steps."""

__all__ = ["__version__"]

__version__ = "0.1.0"

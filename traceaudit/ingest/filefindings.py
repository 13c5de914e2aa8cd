"""Findings about the file itself (filled in below)."""
from typing import Any

def find_in_file(*args: Any) -> list[Any]:
    return []

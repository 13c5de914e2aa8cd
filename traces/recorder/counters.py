"""Hardware counters: what ``ncu`` prints, as a compact table with units in the header."""

import csv
import ctypes
import gzip
import re
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path

__all__ = ["COLD_METRICS", "METRICS", "compact", "demangle"]

METRICS = {
    "gpu__time_duration.sum": "duration_ns",
    "dram__bytes_read.sum": "dram_read_bytes",
    "dram__bytes_write.sum": "dram_write_bytes",
    "lts__t_bytes.sum": "l2_bytes",
}
COLD_METRICS = {
    "gpu__time_duration.sum": "duration_ns",
    "dram__bytes_read.sum": "dram_read_bytes",
    "dram__bytes_write.sum": "dram_write_bytes",
    "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum": "sm_read_miss_sectors",
    "lts__t_sectors_srcunit_tex_op_write.sum": "sm_write_sectors",
    "lts__t_sectors_srcunit_tex_op_red.sum": "sm_reduce_sectors",
}
"""With the caches flushed before each pass, what misses the L2 cache is what a kernel reads, each sector once.

Counted at the multiprocessors' door, without the kernel's program, whose fetches DRAM counters hold too.
"""

PASSES = "profiler__replayer_passes"
CASE = re.compile(r"known:([\w-]+)")


def compact(raw: Path, target: Path, metrics: Mapping[str, str]) -> int:
    """Write the table ``raw`` that ``ncu --csv --page raw`` printed as a small CSV, compressed.

    Columns: launch order, known case (empty for others), full kernel name as the profiler of torch
    writes it, grid and block as ``x*y*z``, and ``metrics``. Returns the number of kernels.

    Raises
    ------
    ValueError
        A kernel ran more than once to be counted, so that its counters mix cold and warm caches.
    """
    rows = list(_kernels(raw))
    if metrics is METRICS and any(row[PASSES] != "1" for row in rows):
        raise ValueError(f"kernels were replayed in several passes: {raw}")
    # The names of kernels are long and repeat; no time stamp, so that equal counts are equal files.
    with gzip.GzipFile(target, "wb", 9, mtime=0) as packed, TextIOWrapper(packed, newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["launch", "case", "kernel", "grid", "block", *metrics.values()])
        for launch, row in enumerate(rows):
            case = CASE.search(" ".join(filter(None, row.values())))
            writer.writerow(
                [
                    launch,
                    case.group(1) if case else "",
                    demangle(row["Kernel Name"]),
                    _product(row["Grid Size"]),
                    _product(row["Block Size"]),
                    *(round(float(row[name].replace(",", ""))) for name in metrics),
                ]
            )
    return len(rows)


def demangle(name: str) -> str:
    """Return the C++ symbol ``name`` spelt out by the compiler's own demangler, as Kineto does.

    Names that are no mangled symbol (Triton, cuBLAS) come back as they are.
    """
    function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    function.restype = ctypes.c_void_p
    status = ctypes.c_int()
    # Without the prefix the demangler would read a plain name as a type: "f" as float.
    text = name.startswith("_Z") and function(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode()
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


def _kernels(raw: Path) -> Iterator[dict[str, str]]:
    lines = raw.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith('"ID"'))
    reader = csv.DictReader(lines[start:])
    # The first row after the header names the units.
    next(reader)
    yield from reader


def _product(size: str) -> str:
    return "*".join(re.findall(r"\d+", size))

"""Holistic Trace Analysis as plain numbers, in the units that it prints (µs)."""

import warnings
from pathlib import Path

__all__ = ["HtaDiffers", "Theirs"]


class HtaDiffers(Exception):  # noqa: N818  (an outcome, not an error)
    """HTA's number is not the right one."""


class Theirs:
    """What HTA says about one file.

    Parameters
    ----------
    last_step
        Keep the last profiler step, which HTA leaves out by default.
    """

    def __init__(self, data: bytes, folder: Path, *, last_step: bool = True) -> None:
        path = folder / "rank0.json"
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from hta.trace_analysis import TraceAnalysis

            self._analysis = TraceAnalysis(trace_files={0: str(path)}, include_last_profiler_step=last_step)

    def temporal(self) -> dict[str, float]:
        """Return busy, idle, compute, other busy time and span."""
        (row,) = self._frame("get_temporal_breakdown").to_dict("records")
        return {
            "busy": row["kernel_time(us)"] - row["idle_time(us)"],
            "idle": row["idle_time(us)"],
            "compute": row["compute_time(us)"],
            "non_compute": row["non_compute_time(us)"],
            "span": row["kernel_time(us)"],
        }

    def overlap_percent(self) -> float:
        """Return the share of communication that compute hides."""
        return float(self._frame("get_comm_comp_overlap")["comp_comm_overlap_pctg"][0])

    def idle_by_stream(self) -> dict[tuple[int, str], float]:
        """Return idle time by stream and cause."""
        frame = self._frame("get_idle_time_breakdown")[0]
        return {(int(row["stream"]), row["idle_category"]): row["idle_time"] for row in frame.to_dict("records")}

    def kernels(self) -> dict[str, dict[str, float]]:
        """Return sum, mean, least and greatest time by kernel name."""
        frame = self._frame("get_gpu_kernel_breakdown", include_memory_kernels=True)[1]
        return {
            row["name"]: {
                "sum": row["sum (us)"],
                "mean": row["mean (us)"],
                "min": row["min (us)"],
                "max": row["max (us)"],
            }
            for row in frame.to_dict("records")
        }

    def time_by_type(self) -> dict[str, float]:
        """Return busy time by HTA's kernel type."""
        frame = self._frame("get_gpu_kernel_breakdown", include_memory_kernels=True)[0]
        return dict(zip(frame["kernel_type"], frame["sum"], strict=True))

    def launches(self) -> int:
        """Return the number of launches that have statistics."""
        return len(self._frame("get_cuda_kernel_launch_stats")[0])

    def _frame(self, method: str, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(self._analysis, method)(visualize=False, **options)

"""What wrote a trace, as far as its features tell; no writer puts the version of PyTorch in the file."""

from collections.abc import Mapping

from traceaudit.ingest.topkeys import TopKeys

__all__ = ["name_writer"]

_OLD_CATEGORIES = frozenset({"Kernel", "Memcpy", "Memset", "Runtime", "Operator"})
_KINETO_CATEGORIES = _OLD_CATEGORIES | {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cpu_op"}
_OLD_FLOWS = frozenset({"async", "async_gpu", "async_cpu_to_gpu"})


def name_writer(
    keys: TopKeys, categories: Mapping[tuple[str, str], int], features: frozenset[str], *, is_array: bool
) -> str | None:
    """Describe the writer.

    Parameters
    ----------
    keys
        What the object around the events says.
    categories
        Rows by category and phase.
    features
        What the rows showed: see `Collector.features`.
    is_array
        Whether the file is a bare list of events.
    """
    found = {category for category, _ in categories}
    if "merged ranks" in features:
        return "SGLang's merger of ranks"
    if "api_op" in found or "RPD" in features:
        return "rpd2tracing (RPD)"
    if "cpu_to_cuda" in found or "legacy" in features:
        return "PyTorch's profiler before Kineto"
    if "Ascend" in features:
        return "torch_npu (Ascend)"
    if "graph_event_node" in found:
        return "PyTorch, CUPTI monitor"
    return _kineto(keys, found, features, is_array=is_array)


def _kineto(keys: TopKeys, found: set[str], features: frozenset[str], *, is_array: bool) -> str | None:
    if not (
        {"schemaVersion", "baseTimeNanoseconds"} & keys.present
        or "window end" in features
        or found & _KINETO_CATEGORIES
    ):
        return None
    if found & _OLD_CATEGORIES:
        era = "PyTorch 1.8 to 1.11"
    elif found & _OLD_FLOWS:
        era = "PyTorch 1.12 or 1.13"
    elif keys.base_ns is None:
        era = "PyTorch 2.0 to 2.3" if "decimals" not in features else "unknown version"
    elif keys.versions.keys() & {"cupti_version", "roctracer_version", "xpupti_version", "rocprofiler-sdk_version"}:
        era = "PyTorch 2.6 or later"
    elif "cuda_runtime_version" in keys.versions:
        return "PyTorch's Python writer (2.13 or later)"
    else:
        era = "PyTorch 2.4 or later"
    return f"Kineto ({era}{', rewritten as a list' if is_array else ''})"

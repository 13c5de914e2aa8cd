"""`roofline`: the floor of a step."""

from traceaudit.analyses.roofline import napkin
from traceaudit.analyses.roofline import roofline as floor
from traceaudit.config.floor import RooflineRequest
from traceaudit.ingest.modelconfig import is_there, read_model_config
from traceaudit.ingest.safetensors_headers import read_tensors
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.checkpoint import stored_formats
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.presets import preset
from traceaudit.model.llm.quantisation import overridden
from traceaudit.model.results.roofline import Roofline

__all__ = ["architecture_of", "roofline"]


def roofline(request: RooflineRequest) -> Roofline:
    """Give the least time for a step.

    Raises
    ------
    ConfigError
        If the model's configuration or its checkpoint cannot be used.
    UsageError
        If the model is not known, or so many ranks cannot share it.
    """
    if request.napkin is not None:
        return napkin(request.napkin, request.workload, request.peaks, request.measurement)
    model = architecture_of(request.model or "", request.checkpoint, request.weights_dtype)
    return floor(model, request.workload, request.peaks, request.measurement)


def architecture_of(name: str, checkpoint: str | None, weights_dtype: str | None) -> Architecture:
    """Read a model by its path or its packaged name, with its formats by checkpoint and flags."""
    if is_there(name):
        model = architecture(read_model_config(name), name=name, where=name)
    else:
        packaged = preset(name)
        model = architecture(packaged.config, name=packaged.name, where=packaged.key)
    if checkpoint is not None:
        model = model.with_formats(stored_formats(model, read_tensors(checkpoint)))
    if weights_dtype is not None:
        model = model.with_formats(overridden(model.formats, weights_dtype))
    return model

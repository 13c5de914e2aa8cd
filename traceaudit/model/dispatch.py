"""Annotations that torch itself writes around its dispatch: the host's work inside them is the framework's.

Rows of one kind come as ops or as annotations, depending on the version of torch and on how the model was compiled.
"""

import re
from functools import lru_cache

__all__ = ["dispatch_label", "is_dispatch"]

_DISPATCH = re.compile(
    r"## Call CompiledFxGraph\b.*"  # Inductor, around the code of a compiled graph
    r"|Torch-Compiled Region: .*|TorchDynamo Cache Lookup|Pregraph bytecode"  # Dynamo
    r"|AOTDispatcher Runtime Wrapper Prologue"
    r"|nccl:.*",  # a process group, around the enqueuing of a collective
    re.DOTALL,
)
_GRAPH_KEY = re.compile(r"(?<=## Call CompiledFxGraph) \w+(?= ##)")


@lru_cache(maxsize=16384)
def is_dispatch(name: str) -> bool:
    """Return whether an annotation of that name is the framework's own: `torch.compile`'s, or a process group's.

    Annotations of optimisers, data loaders and wrapped modules are torch's as well, but name a part of the program;
    they are none of these.

    Examples
    --------
    >>> is_dispatch("## Call CompiledFxGraph fe4gojamosn6hdsi ##"), is_dispatch("Optimizer.step#SGD.step")
    (True, False)
    """
    return _DISPATCH.fullmatch(name) is not None


def dispatch_label(name: str) -> str:
    """Return the name of a host row without the key of a compiled graph, which changes from run to run.

    Examples
    --------
    >>> dispatch_label("## Call CompiledFxGraph fe4gojamosn6hdsi ##")
    '## Call CompiledFxGraph ##'
    """
    return _GRAPH_KEY.sub("", name)

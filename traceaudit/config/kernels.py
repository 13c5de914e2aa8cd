"""From what the user typed after ``traceaudit kernels`` to its settings, the files that he names read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traceaudit.config.files import existing
from traceaudit.config.running import cached_tokens, kv_dtype, peak, spread
from traceaudit.errors import UsageError
from traceaudit.ingest.machinefile import read_machine
from traceaudit.ingest.modelconfig import is_there, read_model_config
from traceaudit.ingest.specfile import read_spec
from traceaudit.model.bytes.fromtrace import RunFacts
from traceaudit.model.kernelgroups import GroupBy
from traceaudit.model.kerneloptions import KernelOptions, PeakOptions
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.presets import preset
from traceaudit.model.llm.quantisation import overridden
from traceaudit.model.llm.workload import Parallelism, Workload
from traceaudit.model.options import ReconcileOptions

__all__ = ["KernelFlags", "kernel_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFlags:
    """What the user typed; None where not given."""

    spec: str | None = None
    peak_gbps: str | None = None
    peak_tflops: str | None = None
    machine: str | None = None
    shapes_from: str | None = None
    model: str | None = None
    batch: int | None = None
    context: str | None = None
    tp: int = 1
    ep: int = 1
    weights_dtype: str | None = None
    kv_dtype: str | None = None
    group_by: str = GroupBy.NAME
    gains: bool = False


def kernel_options(flags: KernelFlags, base: ReconcileOptions) -> KernelOptions:
    """Check the flags against each other, and read the files that they name.

    Raises
    ------
    UsageError
        If a value means nothing, or flags lack a partner.
    ConfigError
        If a file cannot be used.
    """
    spread(tp=flags.tp, ep=flags.ep)
    contexts = None if flags.context is None else cached_tokens(flags.context, flags.batch)
    config, model = (None, None) if flags.model is None else _model(flags)
    workload = None
    if model is not None:
        if contexts is None or (flags.batch is None and len(contexts) == 1):
            missing = "--context C" if contexts is None else "--batch B"
            raise UsageError(
                f"--model alone does not say what a step moves: {missing} is missing",
                hint="--batch counts the requests that run, --context the tokens in the cache of each",
            )
        workload = Workload(
            contexts, kv_dtype=kv_dtype(flags.kv_dtype), parallelism=Parallelism(tp=flags.tp, ep=flags.ep)
        )
        model.refuse(flags.tp, flags.ep)
    elif flags.tp != 1 and flags.spec is None:
        raise UsageError("--tp needs --model or --spec", hint="add --model config.json")
    elif flags.ep != 1:
        raise UsageError("--ep needs --model", hint="add --model config.json")
    elif flags.kv_dtype is not None or flags.weights_dtype is not None:
        raise UsageError("--kv-dtype and --weights-dtype need --model", hint="add --model config.json")
    return KernelOptions(
        base=base,
        group_by=GroupBy(flags.group_by),
        peaks=_peaks(flags),
        specs=() if flags.spec is None else read_spec(existing("--spec", flags.spec)),
        run=_run(flags, contexts, config),
        model=model,
        workload=workload,
        shapes_from=flags.shapes_from,
        gains=flags.gains,
    )


def _model(flags: KernelFlags) -> tuple[Mapping[str, object], Architecture]:
    name = flags.model or ""
    if is_there(name):
        config: Mapping[str, object] = read_model_config(name)
        model = architecture(config, name=Path(name).name, where=name)
    else:
        packaged = preset(name)
        config, model = packaged.config, architecture(packaged.config, name=packaged.name, where=packaged.key)
    if flags.weights_dtype is not None:
        model = model.with_formats(overridden(model.formats, flags.weights_dtype))
    return config, model


def _run(flags: KernelFlags, contexts: tuple[int, ...] | None, config: Mapping[str, object] | None) -> RunFacts:
    mean = None if contexts is None else round(sum(contexts) / len(contexts))
    return RunFacts(batch=flags.batch, context=mean, tp=flags.tp, config=config or {})


def _peaks(flags: KernelFlags) -> PeakOptions:
    if flags.machine is not None and (flags.peak_gbps is not None or flags.peak_tflops is not None):
        raise UsageError("--machine and --peak-gbps or --peak-tflops contradict each other", hint="give one of them")
    return PeakOptions(
        gbps=None if flags.peak_gbps is None else peak("--peak-gbps", flags.peak_gbps),
        tflops=None if flags.peak_tflops is None else peak("--peak-tflops", flags.peak_tflops),
        machine=None if flags.machine is None else read_machine(existing("--machine", flags.machine)),
    )

"""What hardware counters are read of: one step of these, by name."""

from typing import TYPE_CHECKING

from recorder.config import DENSE, MOE

if TYPE_CHECKING:
    from recorder.loops import Loop

__all__ = ["SUBJECTS", "subject_loop"]

SUBJECTS = {
    "known-kernels": "every known case once",
    "eager-decode-step": "one step of the eager decoder",
    "graph-decode-step": "one replay of the decoder's graph",
    "moe-decode-step": "one step of the decoder with experts",
    "compile-decode-step": "one step of the decoder compiled layer by layer",
    "transformers-dense-step": "one step of the dense model of the transformers library",
    "transformers-moe-step": "one step of the mixture of experts of the transformers library",
    "transformers-compiled-step": "one step of the dense model compiled into CUDA graphs",
}


def subject_loop(subject: str) -> "Loop":
    """Build what runs the step. Imports torch, which only counting needs."""
    if subject == "known-kernels":
        from recorder.known import KnownKernelsLoop

        return KnownKernelsLoop()
    if subject.startswith("transformers-"):
        from recorder.pretrained import PretrainedLoop

        kind = subject.split("-")[1]
        return PretrainedLoop("dense", compiled="reduce-overhead") if kind == "compiled" else PretrainedLoop(kind)
    return _decoder_loop(subject)


def _decoder_loop(subject: str) -> "Loop":
    from recorder.decoder import Decoder
    from recorder.loops import CompiledLoop, EagerLoop, GraphLoop

    decoder = Decoder(MOE if subject == "moe-decode-step" else DENSE)
    if subject == "graph-decode-step":
        return GraphLoop(decoder, run_ahead=False)
    if subject == "compile-decode-step":
        return CompiledLoop(decoder)
    return EagerLoop(decoder)

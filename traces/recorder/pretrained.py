"""Decode steps of models as the ``transformers`` library runs them, with random weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import DynamicCache, StaticCache

__all__ = ["PRETRAINED", "PretrainedLoop"]

BATCH = 8
CONTEXT = 1024
SEED = 0

SHARED = {
    "hidden_size": 2048,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 32_000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}


@dataclass(frozen=True, slots=True)
class Family:
    """Names of the classes in ``transformers`` and what the configuration changes in their defaults."""

    config: str
    model: str
    fields: dict[str, Any]


PRETRAINED = {
    "dense": Family(
        "Qwen3Config",
        "Qwen3ForCausalLM",
        {"num_hidden_layers": 6, "num_attention_heads": 16, "intermediate_size": 6144},
    ),
    "moe": Family(
        "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM",
        {
            "num_hidden_layers": 4,
            "num_attention_heads": 32,
            "intermediate_size": 6144,
            "moe_intermediate_size": 768,
            "num_experts": 64,
            "num_experts_per_tok": 8,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        },
    ),
}


class PretrainedLoop:
    """A step feeds one token a request, appends to the cache, and takes the likeliest tokens to the next step.

    The cache is cut back after each step, so that all steps do the same work. With ``compiled``, a mode of
    ``torch.compile``, Inductor generates the kernels and the cache has a fixed size (``reduce-overhead`` also captures
    CUDA graphs); else ops are launched one by one, and the cache is joined anew in each step.
    """

    def __init__(
        self, kind: str, *, compiled: str = "", device: str = "cuda", batch: int = BATCH, context: int = CONTEXT
    ) -> None:
        family = PRETRAINED[kind]
        torch.manual_seed(SEED)
        config = getattr(transformers, family.config)(**SHARED, **family.fields)
        self._model = getattr(transformers, family.model)(config).to(device=device, dtype=torch.bfloat16).eval()
        self._context = context
        size = {"max_cache_len": context + 1} if compiled else {}
        self._cache = (StaticCache if compiled else DynamicCache)(config=config, **size)
        prompt = torch.randint(config.vocab_size, (batch, context), device=device)
        with torch.inference_mode():
            self._model(input_ids=prompt, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        self._tokens = prompt[:, -1:].clone()
        self._forward = torch.compile(self._model.forward, mode=compiled) if compiled else self._model

    @torch.inference_mode()
    def step(self) -> None:
        """Run one decode step."""
        result = self._forward(input_ids=self._tokens, past_key_values=self._cache, use_cache=True)
        self._tokens = result.logits[:, -1:].argmax(dim=-1)
        if isinstance(self._cache, StaticCache):
            for layer in self._cache.layers:
                layer.cumulative_length.fill_(self._context)
        else:
            self._cache.crop(-1)

    def write_beside(self, stem: str) -> dict[str, str]:
        """Write ``stem-config.json`` and say what it is."""
        path = Path(f"{stem}-config.json")
        path.write_text(self._model.config.to_json_string(use_diff=True))
        return {path.as_posix(): "the model's configuration, as the library writes it"}

    def truth(self) -> dict[str, object]:
        """Return the sizes that the bytes of a step follow from."""
        weights = sum(parameter.numel() * parameter.element_size() for parameter in self._model.parameters())
        return {
            "batch": self._tokens.shape[0],
            "context": self._context,
            "weight_bytes": weights,
            "embedding_bytes": self._model.get_input_embeddings().weight.nbytes,
            "transformers": transformers.__version__,
        }

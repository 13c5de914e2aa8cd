"""The engine loop as a scenario: it serves a benchmark, then runs a steady batch step by step."""

import json
from pathlib import Path

import torch

from recorder.benchmark import serve
from recorder.decoder import Decoder
from recorder.loops import capture_graph
from recorder.serving import Engine, Request
from recorder.serving_log import ServingLog

__all__ = ["EngineLoop"]

POOL_REQUESTS = 32
REQUESTS = 48
OUTPUT_TOKENS = (128, 384)
ENDLESS = 1 << 40


class EngineLoop:
    """An engine that admits the decoder's batch while ``clients`` requests are in flight.

    With ``graph`` a decode pass is one graph launch, else each op is launched from Python.
    """

    def __init__(self, decoder: Decoder, *, graph: bool, clients: int) -> None:
        self._decoder = decoder
        self._clients = clients
        self._graph = graph
        self._decode = capture_graph(decoder.step) if graph else decoder.step
        self._engine = self._started(self._new_log())

    def write_beside(self, stem: str) -> dict[str, str]:
        """Serve a benchmark; write ``stem.log`` and ``stem.bench.jsonl`` and say what they are."""
        config = self._decoder.config
        for _ in range(10):
            self.step()
        lines = self._new_log()
        lines.started(admitted=config.batch, free_gb=_free_gb())
        result = serve(
            Engine(self._decoder, decode=self._decode, log=lines),
            clients=self._clients,
            requests=REQUESTS,
            prompt_tokens=config.context,
            output_tokens=OUTPUT_TOKENS,
            seed=config.seed,
        )
        log, bench = Path(f"{stem}.log"), Path(f"{stem}.bench.jsonl")
        log.write_text("\n".join(lines.lines) + "\n")
        bench.write_text(json.dumps(result) + "\n")
        return {
            log.as_posix(): "what the engine logged while it served the benchmark",
            bench.as_posix(): "the benchmark's result, by its client",
        }

    def step(self) -> None:
        self._engine.step()

    def truth(self) -> dict[str, object]:
        self._decoder.step()
        return {
            "clients": self._clients,
            "requests_running": self._engine.running,
            "graph_launches_per_step": int(self._graph),
            "experts_read_by_layer": self._decoder.experts_read(),
        }

    def _new_log(self) -> ServingLog:
        context = self._decoder.config.context
        return ServingLog(context=context, pool_tokens=POOL_REQUESTS * context, graph=self._graph)

    def _started(self, log: ServingLog) -> Engine:
        engine = Engine(self._decoder, decode=self._decode, log=log)
        for _ in range(self._clients):
            engine.send(Request(ENDLESS))
        return engine


def _free_gb() -> float:
    return torch.cuda.mem_get_info()[0] / (1 << 30) if torch.cuda.is_available() else 0.0

"""A mixture of gated MLPs: a router picks some of them for each token."""

import torch
from torch import Tensor, nn

from recorder.config import DecoderConfig

__all__ = ["ExpertMlp"]


class ExpertMlp(nn.Module):
    """Each token passes ``experts_per_token`` of the layer's gated MLPs, weighted by the router.

    ``chosen`` keeps the experts of the last step, one row for each token.
    """

    chosen: Tensor

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.experts_per_token = config.experts_per_token
        self.router = nn.Linear(config.hidden, config.experts, bias=False)
        gate_up = torch.randn(config.experts, 2 * config.intermediate, config.hidden)
        down = torch.randn(config.experts, config.hidden, config.intermediate)
        self.gate_up = nn.Parameter(gate_up.mul_(config.hidden**-0.5))
        self.down = nn.Parameter(down.mul_(config.intermediate**-0.5))

    def forward(self, hidden: Tensor) -> Tensor:
        from recorder.triton_kernels import silu_mul, slot_gemv

        shares, self.chosen = self.router(hidden).float().softmax(dim=-1).topk(self.experts_per_token)
        shares = (shares / shares.sum(dim=-1, keepdim=True)).to(hidden.dtype)
        order = self.chosen.flatten().argsort()
        gated = silu_mul(slot_gemv(hidden, self.gate_up, self.chosen, order))
        states = slot_gemv(gated, self.down, self.chosen, order)
        return (states.view(*self.chosen.shape, -1) * shares[..., None]).sum(dim=1)

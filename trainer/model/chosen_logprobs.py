"""Log-probabilities of chosen tokens, with one array of the logits' size kept for the backward pass instead of several."""

from typing import Any

import torch


def chosen_logprobs(
    logits: torch.Tensor, labels: torch.Tensor, temperatures: torch.Tensor, suppressed: torch.Tensor
) -> torch.Tensor:
    """float32, (N,): of `labels` under softmax(logits / temperatures) over all but the `suppressed` tokens; logits (N, V)."""
    found: torch.Tensor = _Chosen.apply(logits, labels, temperatures, suppressed)  # type: ignore[no-untyped-call]
    return found


class _Chosen(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, logits: torch.Tensor, labels: torch.Tensor, temperatures: torch.Tensor, suppressed: torch.Tensor
    ) -> torch.Tensor:
        scaled = (logits.float() / temperatures[:, None]).index_fill_(-1, suppressed, float("-inf"))
        normalisers = scaled.logsumexp(-1, keepdim=True)
        logprobs = scaled.sub_(normalisers)
        chosen = logprobs.gather(-1, labels[:, None])[:, 0]
        context.save_for_backward(logprobs.exp_(), labels, temperatures)
        context.dtype = logits.dtype
        return chosen

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """d log p(label) / d logit = (1 where it is the label, else 0) - p, over the temperature."""
        probabilities, labels, temperatures = context.saved_tensors
        scaled = (gradients[0] / temperatures)[:, None]
        towards = (probabilities * -scaled).scatter_add_(-1, labels[:, None], scaled)
        return towards.to(context.dtype), None, None, None

"""Log-probabilities of completion tokens: logits are computed only where a completion token is predicted.

They are those of the sampler's own distribution: divided by the temperature, without the tokens it never samples.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from trainer.model.batches import Batch
from trainer.model.chosen_logprobs import chosen_logprobs
from trainer.model.lent_layers import Forward, lend
from trainer.model.model_inputs import model_inputs
from trainer.token_losses import Outputs
from trainer.truncation import Truncation

_CHUNK = 4096
"""Completion tokens whose logits are held at once."""


def cut(truncation: Truncation, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Sets what is cut off to minus infinity; the sampled tokens stay, whatever rounding says. Shape (N, vocabulary)."""
    kept = torch.ones_like(logits, dtype=torch.bool)
    if truncation.min_p > 0.0:
        probabilities = logits.softmax(-1)
        kept &= probabilities >= truncation.min_p * probabilities.amax(-1, keepdim=True)
    if truncation.top_k > 0:
        size = min(truncation.top_k, logits.shape[-1])
        kept &= logits >= logits.topk(size, dim=-1).values[:, -1:]
    if truncation.top_p < 1.0:
        ordered, order = logits.masked_fill(~kept, float("-inf")).softmax(-1).sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        kept &= torch.zeros_like(kept).scatter(-1, order, before < truncation.top_p)
    kept.scatter_(-1, targets[:, None], True)
    return logits.masked_fill(~kept, float("-inf"))


class CompletionModel(nn.Module):
    """A vision-language model that answers with the log-probabilities of its batch's completion tokens."""

    def __init__(self, model: PreTrainedModel, suppressed: Sequence[int]) -> None:
        super().__init__()
        self.model = model
        lend(model.lm_head)
        self._suppressed: torch.Tensor
        self.register_buffer("_suppressed", torch.tensor(suppressed, dtype=torch.long), persistent=False)

    def forward(self, batch: Batch, truncation: Truncation | None = None, *, entropy: bool = False) -> Outputs:
        """With `entropy`, that of the sampler's distribution too."""
        outputs = self.model.model(**model_inputs(self.model.model, batch))
        hidden = outputs.last_hidden_state[0, batch.columns]
        picked = self.model.lm_head(hidden, use=partial(self._picked, batch, truncation, entropy))
        return Outputs(picked[:, 0], picked[:, 1] if entropy else None)

    def _picked(
        self, batch: Batch, truncation: Truncation | None, entropy: bool, head: Forward, hidden: torch.Tensor
    ) -> torch.Tensor:
        """A chunk after the other, each calculated again for its gradients."""
        pick = partial(self._pick, head, truncation, entropy)
        if len(hidden) <= _CHUNK:
            return pick(hidden, batch.labels, batch.temperatures)
        parts = zip(*(torch.split(each, _CHUNK) for each in (hidden, batch.labels, batch.temperatures)), strict=True)
        return torch.cat([checkpoint(pick, *part, use_reentrant=False) for part in parts])

    def _pick(
        self,
        head: Forward,
        truncation: Truncation | None,
        entropy: bool,
        hidden: torch.Tensor,
        labels: torch.Tensor,
        temperatures: torch.Tensor,
    ) -> torch.Tensor:
        """(N, 1): log-probabilities; with `entropy` (N, 2)."""
        raw = head(hidden)
        if not entropy and (truncation is None or not truncation.active):
            return chosen_logprobs(raw, labels, temperatures, self._suppressed)[:, None]
        logits = raw.float() / temperatures[:, None]
        logits = logits.index_fill(-1, self._suppressed, float("-inf"))
        if truncation is not None and truncation.active:
            logits = cut(truncation, logits, labels)
        normaliser: torch.Tensor = logits.logsumexp(-1)
        chosen: torch.Tensor = logits.gather(-1, labels[:, None])[:, 0] - normaliser
        if not entropy:
            return chosen[:, None]
        # H = log Z - sum p * logit; a token that is never sampled adds nothing. Its infinite logit must not reach the product:
        # the gradient of 0 * infinity is no number, even where the product itself is masked.
        weighted = logits.softmax(-1) * logits.masked_fill(~logits.isfinite(), 0.0)
        return torch.stack([chosen, normaliser - weighted.sum(-1)], dim=-1)

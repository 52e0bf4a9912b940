"""Sampling with the trainer's own model: for the stop rule of a warm start, before any inference engine runs."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from trainer.items import Item, targets_of
from trainer.model.batches import collate
from trainer.model.pixel_scale import PixelScale
from trainer.samples import Sample


@torch.no_grad()
def sample_completions(
    model: nn.Module,
    samples: Sequence[Sample],
    *,
    scale: PixelScale,
    suppressed: Sequence[int],
    stop_tokens: Sequence[int],
    max_new_tokens: int,
    seed: int,
    batch_size: int = 128,
) -> list[list[int]]:
    """Samples one completion at temperature 1 for the prompt of every sample (their own completions are not looked at).

    Prompts of one length are decoded side by side, so no padding is needed. Returns tokens, the stop token included.
    """
    generator = torch.Generator().manual_seed(seed)
    was_training = model.training
    model.eval()
    by_length: dict[int, list[int]] = {}
    for index, sample in enumerate(samples):
        by_length.setdefault(sample.num_prompt, []).append(index)
    found: dict[int, list[int]] = {}
    for indices in by_length.values():
        for first in range(0, len(indices), batch_size):
            part = indices[first : first + batch_size]
            answers = _decode(
                model, [samples[index] for index in part], scale, suppressed, stop_tokens, max_new_tokens, generator
            )
            found.update(zip(part, answers, strict=True))
    model.train(was_training)
    return [found[index] for index in range(len(samples))]


def _decode(
    model: nn.Module,
    samples: Sequence[Sample],
    scale: PixelScale,
    suppressed: Sequence[int],
    stop_tokens: Sequence[int],
    max_new_tokens: int,
    generator: torch.Generator,
) -> list[list[int]]:
    device = next(model.parameters()).device
    batch = collate([Item(sample, targets_of(sample)) for sample in samples], scale).to(device)
    length = samples[0].num_prompt
    prompts = torch.from_numpy(np.stack([sample.tokens[:length] for sample in samples]).astype(np.int64))
    prompt_positions = torch.from_numpy(np.stack([s.positions[:, :length] for s in samples], axis=1).astype(np.int64))
    after = prompt_positions.amax(dim=(0, 2)) + 1
    out = model(
        input_ids=prompts.to(device),
        position_ids=prompt_positions.to(device),
        pixel_values=batch.pixels,
        image_grid_thw=batch.grids,
        logits_to_keep=1,
        use_cache=True,
    )
    stops = torch.tensor(list(stop_tokens))
    done = torch.zeros(len(samples), dtype=torch.bool)
    answers: list[list[int]] = [[] for _ in samples]
    for offset in range(max_new_tokens):
        logits = out.logits[:, -1].float().cpu()
        logits[:, list(suppressed)] = float("-inf")
        tokens = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
        for row, token in enumerate(tokens.tolist()):
            if not done[row]:
                answers[row].append(token)
        done |= torch.isin(tokens, stops)
        if done.all() or offset == max_new_tokens - 1:
            break
        out = model(
            input_ids=tokens[:, None].to(device),
            position_ids=(after + offset).view(1, -1, 1).expand(3, -1, 1).to(device),
            past_key_values=out.past_key_values,
            use_cache=True,
        )
    return answers

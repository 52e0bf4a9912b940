"""Work without effect, for passes that all parameters have to take part in."""

import numpy as np
from transformers import PreTrainedModel

from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from trainer.items import Item, targets_of
from trainer.model.families import family_of
from trainer.samples import Sample


def idle_item(model: PreTrainedModel, *, stop_token: int) -> Item:
    """A sample without weight: the smallest screenshot and one completion token, which reach every parameter.

    Args:
        stop_token: a token that may be sampled.
    """
    family, config = family_of(model.config), model.config
    screenshot = family.smallest()
    frames, rows, columns = screenshot.grid
    image = [int(config.image_token_id)] * (frames * rows * columns // family.patches_a_token)
    tokens = np.array([*image, stop_token], dtype=np.int64)
    sample = Sample(
        ref=RecordRef(EpisodeId("idle"), attempt=0, kind="act", step=0),
        tokens=tokens.astype(np.int32),
        num_prompt=len(image),
        positions=family.positions(tokens, tokens == config.image_token_id, [screenshot.grid]),
        logprobs=np.zeros(1, dtype=np.float32),
        temperature=1.0,
        screenshots=(screenshot,),
        versions=np.zeros(1, dtype=np.int32),
    )
    return Item(sample, targets_of(sample)).idle

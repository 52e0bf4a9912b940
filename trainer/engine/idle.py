"""Work without effect, for passes that all parameters have to take part in."""

import numpy as np
from transformers import PreTrainedModel

from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from trainer.engine.dealing import Share
from trainer.items import Item, targets_of
from trainer.samples import Patches, Sample


def idle_share(model: PreTrainedModel) -> Share:
    """One micro-batch without weight: a screenshot of one token and one completion token, which reach every parameter."""
    config, vision = model.config, model.config.vision_config
    side = int(vision.spatial_merge_size)
    values = int(vision.in_channels) * int(vision.patch_size) ** 2
    stop = config.text_config.eos_token_id
    tokens = [config.vision_start_token_id, config.image_token_id, config.vision_end_token_id, stop]
    sample = Sample(
        ref=RecordRef(EpisodeId("idle"), attempt=0, kind="act", step=0),
        tokens=np.array(tokens, dtype=np.int32),
        num_prompt=3,
        positions=np.arange(4, dtype=np.int32)[None].repeat(3, axis=0),
        logprobs=np.zeros(1, dtype=np.float32),
        temperature=1.0,
        screenshots=(Patches(np.zeros((side * side, values), dtype=np.uint8), (1, side, side)),),
        versions=np.zeros(1, dtype=np.int32),
    )
    return [[Item(sample, targets_of(sample)).idle]]

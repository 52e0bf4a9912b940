"""A sample without pictures, of what was asked and answered in words."""

import numpy as np
from tokenizers import Tokenizer

from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from trainer.samples import Sample


def spoken_sample(tokenizer: Tokenizer, asked: str, answered: str) -> Sample:
    prompt, answer = (tokenizer.encode(text, add_special_tokens=False).ids for text in (asked, answered))
    tokens = np.array([*prompt, *answer], dtype=np.int32)
    return Sample(
        ref=RecordRef(episode=EpisodeId("e"), attempt=1, kind="act", step=0),
        tokens=tokens,
        num_prompt=len(prompt),
        positions=np.zeros((3, len(tokens)), dtype=np.int32),
        logprobs=np.zeros(0, dtype=np.float32),
        temperature=1.0,
        screenshots=(),
        versions=np.full(len(answer), -1, dtype=np.int32),
    )

"""Dealing samples to ranks and micro-batches: nothing is lost or doubled, limits hold, loads are balanced."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from trainer.engine.dealing import deal
from trainer.items import Item, targets_of
from trainer.samples import Sample

LENGTHS = st.lists(st.integers(2, 60), min_size=1, max_size=40)


def item(index: int, length: int) -> Item:
    sample = Sample(
        ref=RecordRef(EpisodeId("e"), attempt=1, kind="act", step=index),
        tokens=np.zeros(length, dtype=np.int32),
        num_prompt=length - 1,
        positions=np.zeros((3, length), dtype=np.int32),
        logprobs=np.zeros(0, dtype=np.float32),
        temperature=1.0,
        screenshots=(),
        versions=np.zeros(1, dtype=np.int32),
    )
    return Item(sample, targets_of(sample, weights=np.ones(1)))


@given(lengths=LENGTHS, num_ranks=st.integers(1, 5), micro_batch=st.integers(1, 8), max_tokens=st.integers(0, 120))
def test_dealing_keeps_everything_and_balances_tokens(
    lengths: list[int], num_ranks: int, micro_batch: int, max_tokens: int
) -> None:
    items = [item(index, length) for index, length in enumerate(lengths)]
    shares = deal(items, num_ranks=num_ranks, micro_batch=micro_batch, max_tokens=max_tokens)
    counted = Counter(i.sample.ref.step for share in shares for part in share for i in part if i.targets.weights.any())
    assert counted == Counter(range(len(items)))
    assert len(shares) == num_ranks
    assert len({len(share) for share in shares}) == 1, "every rank makes equally many backward passes"
    parts = [part for share in shares for part in share]
    assert all(1 <= len(part) <= micro_batch for part in parts)
    if max_tokens:
        assert all(len(part) == 1 or sum(len(i.sample.tokens) for i in part) <= max_tokens for part in parts)
    loads = [sum(len(i.sample.tokens) for part in share for i in part if i.targets.weights.any()) for share in shares]
    assert max(loads) - min(loads) <= max(lengths)
    assert any(part[0].targets.weights.any() for share in shares for part in share[-1:]), "no step is idle on all ranks"

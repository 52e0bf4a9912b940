"""Dealing samples to ranks and micro-batches: nothing is lost or doubled, limits hold, loads are balanced."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from trainer.engine.dealing import deal
from trainer.items import Item, targets_of
from trainer.samples import Patches, Sample

LENGTHS = st.lists(st.integers(2, 60), min_size=1, max_size=40)


SHOWN = Patches(np.zeros((4, 3), dtype=np.uint8), (1, 2, 2))


def item(index: int, length: int, *, shown: bool = False) -> Item:
    sample = Sample(
        ref=RecordRef(EpisodeId("e"), attempt=1, kind="act", step=index),
        tokens=np.zeros(length, dtype=np.int32),
        num_prompt=length - 1,
        positions=np.zeros((3, length), dtype=np.int32),
        logprobs=np.zeros(0, dtype=np.float32),
        temperature=1.0,
        screenshots=(SHOWN,) if shown else (),
        versions=np.zeros(1, dtype=np.int32),
    )
    return Item(sample, targets_of(sample, weights=np.ones(1)))


IDLE = item(1000, 2, shown=True).idle


@given(
    lengths=LENGTHS,
    num_shown=st.integers(0, 3),
    num_ranks=st.integers(1, 5),
    micro_batch=st.integers(1, 8),
    max_tokens=st.integers(0, 120),
)
def test_dealing_keeps_everything_and_balances_tokens(
    lengths: list[int], num_shown: int, num_ranks: int, micro_batch: int, max_tokens: int
) -> None:
    items = [item(index, length, shown=index < num_shown) for index, length in enumerate(lengths)]
    shares = deal(items, num_ranks=num_ranks, micro_batch=micro_batch, max_tokens=max_tokens, idle=IDLE)
    trained = [[[i for i in part if i.targets.weights.any()] for part in share] for share in shares]
    counted = Counter(i.sample.ref.step for share in trained for part in share for i in part)
    assert counted == Counter(range(len(items)))
    assert len(shares) == num_ranks
    assert len({len(share) for share in shares}) == 1, "every rank makes equally many backward passes"
    assert all(part for share in shares for part in share)
    for part in (part for share in trained for part in share):
        assert len(part) <= micro_batch
        assert not max_tokens or len(part) <= 1 or sum(len(i.sample.tokens) for i in part) <= max_tokens
    loads = [sum(len(i.sample.tokens) for part in share for i in part) for share in trained]
    assert max(loads) - min(loads) <= max(lengths)
    assert any(share[-1] for share in trained), "no step is idle on all ranks"


@given(
    lengths=LENGTHS,
    num_shown=st.integers(0, 3),
    num_ranks=st.integers(1, 5),
    micro_batch=st.integers(1, 8),
    reaches_all=st.booleans(),
)
def test_all_ranks_or_none_show_the_model_a_screenshot(
    lengths: list[int], num_shown: int, num_ranks: int, micro_batch: int, reaches_all: bool
) -> None:
    items = [item(index, length, shown=index < num_shown) for index, length in enumerate(lengths)]
    shares = deal(items, num_ranks=num_ranks, micro_batch=micro_batch, idle=IDLE, reaches_all=reaches_all)
    for parts in zip(*shares, strict=True):
        shown = {any(i.sample.screenshots for i in part) for part in parts}
        assert len(shown) == 1
        assert True in shown or not reaches_all
    if num_ranks == 1 and not reaches_all:
        assert not any(i is IDLE for part in shares[0] for i in part), "no other rank waits for it"

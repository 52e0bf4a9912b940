"""The optimizer's state in stretches: whoever wrote them in whatever parts, every part is found again."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import CheckpointCorrupt
from trainer.engine.held_state import Progress, Stretch, open_saved
from trainer.model.tensor_files import write_tensors

SIZE = 12
VALUES = torch.arange(float(SIZE))
cuts = st.lists(st.integers(1, SIZE - 1), max_size=4, unique=True).map(lambda cuts: [0, *sorted(cuts), SIZE])


def wrote(folder: Path, cut: Sequence[int]) -> Path:
    """Each part by a rank of its own."""
    for rank, (start, end) in enumerate(pairwise(cut)):
        counts = {"num_updates": torch.tensor(7.0), "num_steps": torch.tensor(6.0), "loss_scale": torch.tensor([8.0, 2.0])}
        held = {**counts, f"exp_avg.w@{start}": VALUES[start:end]}
        write_tensors(folder, f"optimizer-rank{rank:05d}", [held])
    return folder


def stretch(start: int, end: int) -> Stretch:
    return Stretch(start, torch.full((end - start,), -1.0), lambda: None)


@given(written=cuts, read=cuts)
def test_any_number_of_ranks_reads_what_any_number_wrote(
    tmp_path_factory: pytest.TempPathFactory, written: list[int], read: list[int]
) -> None:
    with open_saved(wrote(tmp_path_factory.mktemp("state"), written), "optimizer") as saved:
        assert saved.progress == Progress(7, 6, (8.0, 2.0))
        for start, end in pairwise(read):
            held = stretch(start, end)
            saved.fill("exp_avg", "w", held)
            assert torch.equal(held.values, VALUES[start:end])


def test_what_was_not_saved_is_not_made_up(tmp_path: Path) -> None:
    with open_saved(wrote(tmp_path, [0, 5, SIZE]), "optimizer") as saved:
        for key, name in (("exp_avg", "v"), ("exp_avg_sq", "w")):
            with pytest.raises(KeyError, match=f"{key}.{name}"):
                saved.fill(key, name, stretch(0, SIZE))
    (tmp_path / "optimizer-rank00001.safetensors").unlink()
    with open_saved(tmp_path, "optimizer") as saved, pytest.raises(KeyError):
        saved.fill("exp_avg", "w", stretch(4, 8))


def test_a_state_without_its_counts_is_refused(tmp_path: Path) -> None:
    write_tensors(tmp_path, "optimizer-rank00000", [{"exp_avg.w@0": VALUES}])
    with pytest.raises(CheckpointCorrupt, match="after how many updates"), open_saved(tmp_path, "optimizer"):
        pass


def test_a_state_that_was_never_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(CheckpointCorrupt, match=r"has no critic-optimizer-rank\*\.safetensors"),
        open_saved(wrote(tmp_path, [0, SIZE]), "critic-optimizer"),
    ):
        pass

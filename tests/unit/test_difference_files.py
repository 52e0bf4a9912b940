"""Differences of weights: nothing is lost, however much changed; what is damaged gives an error, or is told by its hash."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bus.weight_differences import apply_differences, write_difference
from schemas.errors import CheckpointCorrupt

_NUM_PATTERNS = 5000


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def moved(data: bytes, share: float, far: float, rng: np.random.Generator) -> bytes:
    """So many of the 16-bit patterns move, so many of these anywhere and the others by one; a last odd byte changes."""
    patterns = np.frombuffer(data[: len(data) // 2 * 2], dtype="<u2").copy()
    where = np.flatnonzero(rng.random(len(patterns)) < share)
    steps = np.where(rng.random(len(where)) < far, rng.integers(0, 2**16, len(where)), rng.choice([1, -1], len(where)))
    patterns[where] += steps.astype(np.uint16)
    return patterns.tobytes() + bytes(255 - each for each in data[len(patterns) * 2 :])


def row(folder: Path, contents: list[bytes]) -> tuple[list[Path], list[Path]]:
    """Files, and the differences between them."""
    files = [folder / f"{number}" for number in range(len(contents))]
    for file, data in zip(files, contents, strict=True):
        file.write_bytes(data)
    differences = [folder / f"{number}.difference" for number in range(1, len(files))]
    for difference, old, new in zip(differences, files, files[1:], strict=False):
        assert write_difference(old, new, difference, old_sha256=digest(old.read_bytes()), most_bytes=10**9)
    return files, differences


@settings(max_examples=60)
@given(
    num_bytes=st.integers(0, 4000),
    share=st.floats(0, 1),
    far=st.floats(0, 1),
    steps=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_what_differences_lead_to_is_the_file(
    tmp_path_factory: pytest.TempPathFactory, num_bytes: int, share: float, far: float, steps: int, seed: int
) -> None:
    folder, rng = tmp_path_factory.mktemp("row"), np.random.default_rng(seed)
    contents = [rng.bytes(num_bytes)]
    for _ in range(steps):
        contents.append(moved(contents[-1], share, far, rng))
    files, differences = row(folder, contents)
    apply_differences(files[0], differences, folder / "made")
    assert (folder / "made").read_bytes() == contents[-1]


def test_every_move_and_every_gap_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of a thousand patterns: the last one is shorter."""
    monkeypatch.setattr("bus.weight_differences._BLOCK", 1000)
    old = np.zeros(2**16, dtype="<u2")
    new = np.arange(2**16, dtype="<u2")
    sparse = old.copy()
    sparse[np.cumsum(np.arange(300))] = 1
    files, differences = row(tmp_path, [old.tobytes(), new.tobytes(), sparse.tobytes(), old.tobytes()])
    for number in range(1, 4):
        apply_differences(files[0], differences[:number], tmp_path / "made")
        assert (tmp_path / "made").read_bytes() == files[number].read_bytes()


def test_few_small_moves_take_little_room(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = rng.bytes(2 * 10**6)
    _, (difference,) = row(tmp_path, [data, moved(data, 0.05, 0.0, rng)])
    assert difference.stat().st_size < 0.04 * len(data)


@pytest.mark.parametrize("why", ["longer than it may be", "another size", "another file"])
def test_what_is_not_worth_it_or_wrong_leaves_nothing_behind(tmp_path: Path, why: str) -> None:
    rng = np.random.default_rng(0)
    old, new, difference = (tmp_path / name for name in ("old", "new", "difference"))
    data = rng.bytes(2 * _NUM_PATTERNS)
    old.write_bytes(data)
    new.write_bytes(moved(data, 0.5, 0.0, rng) + (b"more" if why == "another size" else b""))
    most_bytes = 100 if why == "longer than it may be" else 10**6
    old_sha256 = digest(data[::-1] if why == "another file" else data)
    assert not write_difference(old, new, difference, old_sha256=old_sha256, most_bytes=most_bytes)
    assert not difference.exists()


def test_a_damaged_difference_is_refused_or_leads_to_another_file(tmp_path: Path) -> None:
    """Never to an error without a name, nor to more bytes than the file has."""
    rng = np.random.default_rng(0)
    data = rng.bytes(2 * _NUM_PATTERNS + 1)
    (old, new), (difference,) = row(tmp_path, [data, moved(data, 0.2, 0.1, rng)])
    whole, num_refused = difference.read_bytes(), 0
    damaged = [whole[:-1], whole + b"x", b"", whole[:16], rng.bytes(len(whole))]
    for place in rng.integers(0, len(whole), 300):
        damaged.append(whole[:place] + bytes([whole[place] ^ (1 << int(rng.integers(8)))]) + whole[place + 1 :])
    for wrong in damaged:
        difference.write_bytes(wrong)
        try:
            apply_differences(old, [difference], tmp_path / "made")
        except CheckpointCorrupt:
            num_refused += 1
        else:
            assert (tmp_path / "made").stat().st_size == new.stat().st_size
            assert (tmp_path / "made").read_bytes() != new.read_bytes()
    assert num_refused > 200
    difference.write_bytes(whole)
    (tmp_path / "other").write_bytes(data[:-200])
    with pytest.raises(CheckpointCorrupt):
        apply_differences(tmp_path / "other", [difference], tmp_path / "made")

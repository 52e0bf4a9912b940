"""Which way to a file is the shortest, and what has to stay so that there is one."""

import hashlib

import msgspec
import pytest

from bus.weight_routes import Catalogue, shortest_route
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint, FileHash, WeightDifference
from tests import builders

pytestmark = [pytest.mark.anyio]
WHOLE, PART = 1000, 100


def sha(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def weights(version: int) -> FileHash:
    return FileHash(path="model.safetensors", sha256=sha(f"weights {version}"), num_bytes=WHOLE)


def part(version: int) -> FileHash:
    """The difference from the version before."""
    return FileHash(path="model.safetensors.difference", sha256=sha(f"difference {version}"), num_bytes=PART)


def announced(version: int, *, whole: bool = False) -> Checkpoint:
    difference = WeightDifference(weights(version).sha256, weights(version - 1).sha256, part(version))
    return msgspec.structs.replace(
        builders.checkpoint(version),
        version=PolicyVersion(version),
        files=(weights(version), FileHash(path="config.json", sha256=sha("config"), num_bytes=7)),
        differences=() if whole else (difference,),
    )


VERSIONS = [announced(0, whole=True), announced(1), announced(2), announced(3), announced(4, whole=True), announced(5)]
CATALOGUE = Catalogue.of(VERSIONS)


@pytest.mark.parametrize(
    ("here", "stored", "begin", "parts", "num_bytes"),
    [
        ([], ["w0", "d1", "d2", "d3"], 0, [1, 2, 3], WHOLE + 3 * PART),
        ([], ["w0", "d1", "d2", "d3", "w3"], 3, [], WHOLE),
        ([], ["w0", "d1", "d2", "d3", "w2"], 2, [3], WHOLE + PART),
        (["w2"], ["w0", "d1", "d2", "d3"], 2, [3], PART),
        (["w0"], ["w0", "d1", "d2", "d3", "w3"], 0, [1, 2, 3], 3 * PART),
        (["w0"], ["d1", "d3", "w3"], 3, [], WHOLE),
        (["w0"], ["d1", "d3"], None, [], 0),
        ([], [], None, [], 0),
    ],
)
async def test_the_shortest_way_to_version_3(
    here: list[str], stored: list[str], begin: int | None, parts: list[int], num_bytes: int
) -> None:
    names = {"w": weights, "d": part}

    def hashes(those: list[str]) -> set[str]:
        return {names[name[0]](int(name[1:])).sha256 for name in those}

    async def is_stored(file: FileHash) -> bool:
        return file.sha256 in hashes(stored)

    found = await shortest_route(weights(3), CATALOGUE, is_here=lambda file: file.sha256 in hashes(here), is_stored=is_stored)
    if begin is None:
        assert found is None
        return
    assert found is not None
    assert (found.begin, found.num_bytes) == (weights(begin), num_bytes)
    assert found.is_here is (f"w{begin}" in here)
    assert [difference.file for difference in found.differences] == [part(number) for number in parts]


def test_what_a_version_is_made_of_is_needed() -> None:
    config = sha("config")
    third = {config, *(weights(version).sha256 for version in range(4)), *(part(version).sha256 for version in (1, 2, 3))}
    assert CATALOGUE.needed([VERSIONS[3]]) == third
    assert CATALOGUE.needed([VERSIONS[4]]) == {config, weights(4).sha256}
    assert CATALOGUE.needed(VERSIONS[4:]) == {config, weights(4).sha256, weights(5).sha256, part(5).sha256}


def test_what_leads_in_a_circle_leads_nowhere() -> None:
    """A difference from what is not there before it is none, and one to what is there already neither."""
    back = WeightDifference(weights(0).sha256, weights(1).sha256, part(9))
    itself = WeightDifference(weights(7).sha256, weights(7).sha256, part(9))
    circle = [
        announced(0, whole=True),
        msgspec.structs.replace(announced(1), differences=(*announced(1).differences, back)),
        msgspec.structs.replace(announced(7), differences=(itself,)),
    ]
    assert Catalogue.of(circle).chain(weights(0).sha256) == []
    assert [each.file for each in Catalogue.of(circle).chain(weights(1).sha256)] == [part(1)]
    assert Catalogue.of(circle).chain(weights(7).sha256) == []

"""Messages written by every released version can still be read, and those of newer ones fail in the right way."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bus.codec import decode
from schemas.errors import MessageCorrupt
from schemas.messages import AnyMessage
from tests.fixtures.write_messages import EXAMPLES, FOLDER

BY_TAG = {str(message.__struct_config__.tag): message for message in EXAMPLES}
FILES = sorted(FOLDER.glob("*.msgpack"))


def tag_of(file: Path) -> str:
    name, _, version = file.stem.rpartition("-")
    return f"{name}/{version}"


def fields_of(file: Path) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.msgpack.decode(file.read_bytes())
    return fields


def test_every_message_has_its_example() -> None:
    kinds = AnyMessage.__args__
    assert {kind.__struct_config__.tag for kind in kinds} == {tag_of(file) for file in FILES} == set(BY_TAG)


@pytest.mark.parametrize("file", FILES, ids=tag_of)
def test_an_example_of_version_1_is_read(file: Path) -> None:
    assert decode(file.read_bytes()) == BY_TAG[tag_of(file)]


@pytest.mark.parametrize("file", FILES, ids=tag_of)
def test_a_field_added_later_is_ignored(file: Path) -> None:
    later = msgspec.msgpack.encode(fields_of(file) | {"added_later": [1, {"nested": "value"}]})
    assert decode(later) == BY_TAG[tag_of(file)]


@pytest.mark.parametrize("file", FILES, ids=tag_of)
def test_a_newer_tag_is_refused_with_advice(file: Path) -> None:
    newer = msgspec.msgpack.encode(fields_of(file) | {"type": tag_of(file).replace("/1", "/2")})
    with pytest.raises(MessageCorrupt, match="upgrade this worker"):
        decode(newer)

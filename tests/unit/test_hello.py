"""A connection's first question: a server that is still joining its cluster is waited for, one without JetStream is not."""

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bus.address import ServerAddress
from bus.jetstream.bus import require_jetstream
from bus.jetstream.calls import NoResponder
from schemas.errors import BusUnavailable

pytestmark = pytest.mark.anyio
_ADDRESS = ServerAddress("nats://127.0.0.1:4222")
_JOINING, _NOT_ENABLED = 10008, 10039


@dataclass
class Greeted:
    """A link whose server gives these answers in turn, then all is well: an error's number, or None where nobody answers."""

    answers: list[int | None]
    has_jetstream: bool = True
    num_asked: int = field(default=0, init=False)

    async def is_up_within(self, _: float) -> bool:
        return True

    async def request(self, *_: object, **__: object) -> Any:
        self.num_asked += 1
        if len(self.answers) < self.num_asked:
            return SimpleNamespace(data=b"{}")
        number = self.answers[self.num_asked - 1]
        if number is None:
            raise NoResponder("nobody serves $JS.API.INFO")
        return SimpleNamespace(data=json.dumps({"error": {"code": 503, "err_code": number}}).encode())


async def greet(link: Greeted) -> None:
    await require_jetstream(cast(Any, link), _ADDRESS)


async def test_a_server_that_joins_its_cluster_is_waited_for() -> None:
    link = Greeted([None, _JOINING, None])
    await greet(link)
    assert link.num_asked == 4


@pytest.mark.parametrize("link", [Greeted([None], has_jetstream=False), Greeted([_NOT_ENABLED])], ids=["server", "account"])
async def test_a_server_without_jetstream_is_told_at_once(link: Greeted) -> None:
    with pytest.raises(BusUnavailable, match="start it with jetstream enabled"):
        await greet(link)
    assert link.num_asked == 1

"""What became of a stream or queue is said truly, also where the server's answer was lost on its way."""

from typing import Any, cast

import msgspec
import pytest
from nats.aio.msg import Msg

from bus.jetstream.administration import Administration, Outcome
from bus.jetstream.api import CONSUMER_NOT_FOUND, STREAM_NOT_FOUND
from bus.jetstream.calls import NoAnswer
from bus.jetstream.link import Link
from bus.jetstream.retrying import RetryLimits
from bus.topology import streams
from tests.contract.backends import CONFIG, QUEUES, SUBJECTS
from tests.deadlines import HANGS_S

pytestmark = pytest.mark.anyio
SPEC, QUEUE = next(iter(streams(SUBJECTS, CONFIG))), QUEUES[0]


class LosingServer:
    """Keeps configurations, and loses the answer to the next request that changes one."""

    def __init__(self, kept: dict[str, dict[str, Any]]) -> None:
        self._kept = kept
        self.loses = True

    async def is_up_within(self, _: float) -> bool:
        return True

    async def request(self, subject: str, payload: bytes, *, timeout_s: float) -> Msg:
        kind, verb = subject.removeprefix("$JS.API.").split(".")[:2]
        if verb != "INFO":
            self._kept[kind] = msgspec.json.decode(payload)
            if self.loses:
                self.loses = False
                raise NoAnswer("the connection was lost")
        elif kind not in self._kept:
            missing = STREAM_NOT_FOUND if kind == "STREAM" else CONSUMER_NOT_FOUND
            return answer({"error": {"err_code": missing}})
        # A consumer is asked for with its configuration inside.
        return answer({"config": self._kept[kind].get("config", self._kept[kind])})


def answer(content: dict[str, Any]) -> Msg:
    return Msg(_client=cast("Any", None), subject="", data=msgspec.json.encode(content))


@pytest.mark.parametrize(
    ("kept", "outcome"), [({}, "created"), ({kind: {"name": "old"} for kind in ("STREAM", "CONSUMER")}, "changed")]
)
async def test_a_lost_answer_hides_nothing_of_what_was_done(kept: dict[str, dict[str, Any]], outcome: Outcome) -> None:
    server = LosingServer(kept)
    administration = Administration(cast("Link", server), RetryLimits(HANGS_S, HANGS_S))
    applied = await administration.apply([SPEC], [])
    server.loses = True
    applied += await administration.apply([], [QUEUE])
    assert [each.outcome for each in applied] == [outcome, outcome]
    again = await administration.apply([SPEC], [QUEUE])
    assert [each.outcome for each in again] == ["unchanged", "unchanged"]

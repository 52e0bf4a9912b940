"""Creating the only record of a subject, behind what no reader takes: garbage under a name must not keep its owner out."""

from bus.backpressure import append_when_room
from bus.ports import Bus, Expect
from bus.skipping import skip
from schemas.errors import ChainConflict, MessageCorrupt
from schemas.messages import AnyMessage


async def create(bus: Bus, stream: str, subject: str, message: AnyMessage) -> int | None:
    """The record's sequence; None when another that can be read stands there already."""
    behind = 0
    while True:
        try:
            return await append_when_room(bus, stream, subject, message, expect=Expect(subject, behind))
        except ChainConflict:
            seq = await unreadable(bus, stream, subject)
            if seq <= behind:
                return None
            behind = seq


async def unreadable(bus: Bus, stream: str, subject: str) -> int:
    """The sequence of a subject's newest record when no reader takes it; else 0."""
    try:
        await bus.last(stream, subject)
    except MessageCorrupt as error:
        skip(error.subject, error.seq, str(error))
        return error.seq
    return 0

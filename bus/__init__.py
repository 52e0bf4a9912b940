"""Everything that touches the message bus; the only package that knows NATS.

A consumer of one's own needs no other name than these:

    from bus import BEGINNING, NEW, After, connect, consume

    async def main() -> None:
        async with connect("runs/quickstart") as run:
            async for item in run.trajectories(split="train", outcome="answered", start=NEW):
                print(item.seq, item.time, item.message.episode, len(await item.screenshots()))

    consume(main)

`docs/consumers.md` has the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bus.consumer.connect import connect
    from bus.consumer.item import Item
    from bus.consumer.run import Run
    from bus.consumer.script import consume
    from bus.consumer.start import BEGINNING, NEW, After, Start
    from bus.consumer.stream import Stream

__all__ = ["BEGINNING", "NEW", "After", "Item", "Run", "Start", "Stream", "connect", "consume"]

_HOMES = {
    "BEGINNING": "start",
    "NEW": "start",
    "After": "start",
    "Item": "item",
    "Run": "run",
    "Start": "start",
    "Stream": "stream",
    "connect": "connect",
    "consume": "script",
}
"""Loaded when they are first asked for: every worker imports this package, and few of them consume."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"bus.consumer.{_HOMES[name]}"), name)

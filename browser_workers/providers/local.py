"""The browser that a worker starts itself: it serves all its episodes, and ends with it."""

from collections.abc import Sequence

from browser_workers.providers.provider import Bill, Label, Place, Provided, Running

_HERE = Place()


class Local:
    """Satisfies `browser_workers.providers.provider.Provider`, and does nothing for it."""

    lease_s = 0.0

    async def create(self, label: Label) -> Provided:
        return Provided("", _HERE, label)

    async def keep_alive(self, session: Provided) -> None: ...

    async def end(self, session_id: str, *, was_lost: bool = False) -> Bill:
        return Bill()

    async def running(self, run: str) -> Sequence[Running]:
        return ()

    async def close(self) -> None: ...

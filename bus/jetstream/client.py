"""The client library, with what ends its reading without a word mended."""

import asyncio

from nats.aio.client import Client


class PatientClient(Client):
    """A pong may come after whoever asked for it has gone: of the library it ends the task that reads, and the client is deaf
    until its pings have been in vain."""

    async def _process_pong(self) -> None:
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

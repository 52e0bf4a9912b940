"""A file that is touched as long as a process's event loop goes round, for whoever restarts what hangs, as Kubernetes does."""

import os

import anyio

VARIABLE = "MILLRACE_ALIVE_FILE"
"""Names the file; without it there is none."""
_EVERY_S = 5.0


async def show_alive() -> None:
    """Until it is cancelled; whether a server answers makes no difference. Raises `OSError` when it cannot be written."""
    if not (file := os.environ.get(VARIABLE, "")):
        return
    while True:
        await anyio.Path(file).touch()
        await anyio.sleep(_EVERY_S)

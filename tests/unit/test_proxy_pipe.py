"""The drill's proxy where one end is gone before the other is there: under uvloop, writing to it would raise."""

import asyncio

from ops.drills.proxy import TcpProxy, _Pipe


class Ended(asyncio.Transport):
    """As uvloop has it."""

    def __init__(self, *, closing: bool = False) -> None:
        super().__init__()
        self.closing = closing

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.closing:
            raise RuntimeError("the handler is closed")


def test_what_comes_for_an_end_that_is_gone_is_lost_with_it() -> None:
    proxy = TcpProxy("127.0.0.1", 1, at=2)
    near, far, end = _Pipe(proxy), _Pipe(proxy, is_far=True), Ended()
    near.connection_made(Ended(closing=True))
    far.connection_made(end)
    far.data_received(b"early")
    near.join(far)
    assert end.closing, "nobody reads what it sends"
    far.data_received(b"late")
    assert near not in proxy.pipes

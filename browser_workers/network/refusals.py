"""Remembers what lately could not be reached, and why: a browser itself knows only that its proxy failed."""

from collections import OrderedDict

from browser_workers.network.rules import normal_host

_KEPT = 64


class Refusals:
    """Of one episode; the oldest are forgotten."""

    def __init__(self) -> None:
        self._reasons: OrderedDict[str, str] = OrderedDict()

    def add(self, host: str, reason: str) -> bool:
        """Whether this is news."""
        news = self._reasons.pop(host, "") != reason
        self._reasons[host] = reason
        if len(self._reasons) > _KEPT:
            self._reasons.popitem(last=False)
        return news

    def forget(self, host: str) -> None:
        """It was reached after all."""
        self._reasons.pop(host, None)

    def why(self, host: str) -> str:
        """A sentence; empty when nothing is known against `host`."""
        return self._reasons.get(normal_host(host), "")

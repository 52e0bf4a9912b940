"""Gathers an attempt's traffic in the order in which it was asked for.

Invariant: never more than the limits allow; what does not fit is counted, and said.
"""

import gzip
import hashlib
from collections import Counter
from collections.abc import Sequence

import anyio
import msgspec

from browser_workers.har.entry import Wanted, write_entry
from browser_workers.har.exchange import Exchange
from bus.chain import EpisodeChain
from schemas.browser_config import BrowserConfig
from schemas.messages import NetworkRecord, NetworkSummary, Task

_UNKEPT = "Without the requests for pictures, scripts, styles, fonts and media."
UNREAD = "requests of which the browser did not say what they came to"
_UNDER_WAY_S = 1.0
"""For requests that no answer has come to: some never end."""
_MB = 1_000_000


class _Traffic(msgspec.Struct, frozen=True):
    cookies: tuple[str, ...] = ()
    bodies: bool = False


class _Evaluation(msgspec.Struct, frozen=True):
    traffic: _Traffic = _Traffic()


def wanted_by(task: Task) -> Wanted:
    """What the task's evaluation asks for under `traffic`; what cannot be read asks for nothing."""
    try:
        asked = msgspec.json.decode(task.evaluation, type=_Evaluation).traffic if task.evaluation else _Traffic()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        asked = _Traffic()
    return Wanted(frozenset(asked.cookies), asked.bodies)


class NetworkLog:
    """Of one attempt."""

    def __init__(self, max_entries: int, max_bytes: int, wanted: Wanted = Wanted()) -> None:  # noqa: B008 - a value
        self.wanted = wanted
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: dict[int, bytes] = {}
        """JSON, by place."""
        self._num_bytes = 0
        self._num_places = 0
        self._left_out: Counter[str] = Counter()
        """That have no place."""
        self._flaws: dict[int, str] = {}
        """What is not whole, by place."""
        self._under_way: set[int] = set()
        self._unwritten: set[int] = set()
        """Places of what is over."""
        self._changed = anyio.Event()

    @classmethod
    def of(cls, config: BrowserConfig, task: Task) -> "NetworkLog | None":
        """None: nothing is recorded."""
        if not config.record_network:
            return None
        return cls(config.network_max_entries, int(config.network_max_mb * _MB), wanted_by(task))

    def begin(self, exchange: Exchange) -> int | None:
        """A request without its answer; returns its place, None where there is no room."""
        if self._num_places >= self._max_entries:
            self.lose(f"requests behind the first {self._max_entries:,} (browser_config.network_max_entries)")
            return None
        place = self._num_places
        self._num_places += 1
        self._under_way.add(place)
        self._write(place, exchange)
        return place

    def over(self, place: int) -> None:
        """It was answered, or failed: what came of it is written soon."""
        self._under_way.discard(place)
        self._unwritten.add(place)
        self._note_change()

    def put(self, place: int, exchange: Exchange) -> None:
        """The same with its answer, after which nothing more comes of it."""
        self._write(place, exchange)
        self._unwritten.discard(place)
        self._note_change()

    def lose(self, what: str, place: int | None = None) -> None:
        """Counts what is not there, in a phrase."""
        if place is None:
            self._left_out[what] += 1
        else:
            self._flaws[place] = what
            self._unwritten.discard(place)
        self._note_change()

    async def settled(self, patience_s: float, *, under_way_s: float = _UNDER_WAY_S) -> None:
        """Waits until all that was answered is written, and a moment for what is under way."""
        with anyio.move_on_after(under_way_s):
            while self._under_way:
                await self._changed.wait()
        with anyio.move_on_after(patience_s):
            while self._unwritten:
                await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _write(self, place: int, exchange: Exchange) -> None:
        written = write_entry(exchange, self.wanted)
        encoded = msgspec.json.encode(written.entry)
        before = len(self._entries.pop(place, b""))
        self._num_bytes -= before
        if self._num_bytes + len(encoded) > self._max_bytes:
            self._flaws[place] = f"requests beyond {self._max_bytes / _MB:g} MB (browser_config.network_max_mb)"
            return
        self._entries[place] = encoded
        self._num_bytes += len(encoded)
        self._flaws.pop(place, None)
        if written.left_out:
            self._flaws[place] = written.left_out

    def record(self, chain: EpisodeChain, num_earlier: int) -> NetworkRecord:
        """All of it, as the record of the attempt whose chain this is. `num_earlier`: attempts in which a policy had acted."""
        for place in tuple(self._unwritten):
            self.lose(UNREAD, place)
        counted = Counter(self._flaws.values()) + self._left_out
        missing = tuple(f"{number:,} {what}" for what, number in counted.items())
        return _record(chain, num_earlier, [self._entries[place] for place in sorted(self._entries)], missing)

    def unfit(self, chain: EpisodeChain, num_earlier: int, why: str) -> NetworkRecord:
        """In place of one that the bus does not take."""
        return _record(chain, num_earlier, [], (f"all {len(self._entries):,} requests: {why}"[:500],))


def _record(chain: EpisodeChain, num_earlier: int, entries: Sequence[bytes], missing: tuple[str, ...]) -> NetworkRecord:
    said = [_UNKEPT, *(f"Missing: {what}." for what in missing)]
    if num_earlier:
        said.append(f"Attempt {chain.attempt}: what earlier attempts sent is not in here.")
    log = {
        "version": "1.2",
        "creator": {"name": "millrace", "version": "1"},
        "comment": " ".join(said),
        "entries": [msgspec.Raw(entry) for entry in entries],
    }
    har = gzip.compress(msgspec.json.encode({"log": log}), mtime=0)
    summary = NetworkSummary(
        sha256=hashlib.sha256(har).hexdigest(),
        num_entries=len(entries),
        num_bytes=len(har),
        missing=missing,
        num_earlier_attempts=num_earlier,
    )
    return NetworkRecord(
        episode=chain.task.episode,
        attempt=chain.attempt,
        har=har,
        summary=summary,
        num_observations=chain.num_observations,
        num_steps=chain.num_steps,
    )

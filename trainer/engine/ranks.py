"""The processes of one training job: rank 0 commands, the others follow. Only bytes and tensors travel, never pickles.

Started by any standard launcher (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), or alone without one. They speak
without credentials and encryption, so they meet at MASTER_ADDR alone: loopback, or a network of the ranks' own.
"""

import atexit
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, ClassVar

import torch
import torch.distributed as dist

from schemas.errors import TrainerError

_MEET_FOR = timedelta(minutes=5)
"""Until all ranks of a job have been started."""
_FOLLOW_FOR = timedelta(days=30)
"""Ranks wait for rank 0's next command, which waits for episodes: no deadline of theirs may end a quiet run."""


class Ranks:
    """Membership in the job, for as long as the process lives: DeepSpeed keeps the groups that it has seen."""

    under_way: ClassVar[bool] = False
    """Whether several ranks have a command that this one has not carried out: where it failed, the others may wait for this
    one within it. Nothing can be said to them then, and this process has to end; their launcher ends them."""

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        os.environ.setdefault("LOCAL_RANK", "0")
        self.device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if torch.cuda.is_available() else "cpu")
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        if not dist.is_initialized():
            backend = "nccl" if self.device.type == "cuda" else "gloo"
            store = _store(self.rank, self.size)
            dist.init_process_group(backend, store=store, rank=self.rank, world_size=self.size, timeout=_FOLLOW_FOR)
            atexit.register(_leave)
        self._control = dist.new_group(backend="gloo", timeout=_FOLLOW_FOR) if self.size > 1 else None

    @contextmanager
    def command(self, parts: Sequence[bytes] | None = None) -> Iterator[bytes]:
        """Gives every rank its part, to be carried out within the context; only rank 0 passes `parts`."""
        Ranks.under_way = parts is not None and self.size > 1
        received = self.scatter(parts)
        Ranks.under_way = self.size > 1
        yield received
        Ranks.under_way = False

    def scatter(self, parts: Sequence[bytes] | None) -> bytes:
        """Gives every rank its part; only rank 0 passes `parts`."""
        if self._control is None:
            assert parts is not None
            return parts[0]
        sizes = torch.tensor([len(part) for part in parts] if parts is not None else [0] * self.size, dtype=torch.int64)
        dist.broadcast(sizes, src=0, group=self._control)
        longest = int(sizes.max())
        mine = torch.empty(longest, dtype=torch.uint8)
        padded = None
        if parts is not None:
            padded = [torch.frombuffer(bytearray(part.ljust(longest, b"\0")), dtype=torch.uint8) for part in parts]
        dist.scatter(mine, padded, src=0, group=self._control)
        return mine[: int(sizes[self.rank])].numpy().tobytes()

    def gather(self, part: bytes) -> list[bytes]:
        """Every rank's part, on rank 0; elsewhere nothing."""
        if self._control is None:
            return [part]
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor([len(part)]), group=self._control)
        longest = max(1, *(int(size) for size in sizes))
        padded = torch.frombuffer(bytearray(part.ljust(longest, b"\0")), dtype=torch.uint8)
        parts = [torch.empty(longest, dtype=torch.uint8) for _ in sizes] if self.rank == 0 else None
        dist.gather(padded, parts, dst=0, group=self._control)
        return [found[: int(size)].numpy().tobytes() for found, size in zip(parts or [], sizes, strict=False)]

    def broadcast(self, part: bytes, *, source: int = 0) -> bytes:
        """On every rank what `source` passes; what the others pass counts nothing."""
        if self._control is None:
            return part
        size = torch.tensor([len(part)])
        dist.broadcast(size, src=source, group=self._control)
        data = torch.frombuffer(bytearray(part), dtype=torch.uint8) if self.rank == source and part else None
        found = data if data is not None else torch.empty(int(size), dtype=torch.uint8)
        if int(size):
            dist.broadcast(found, src=source, group=self._control)
        return found.numpy().tobytes()

    def move(self, part: bytes, *, source: int) -> bytes:
        """On rank 0 what `source` passes; called on all ranks, of which only those two take part."""
        if self._control is None or self.rank not in (0, source):
            return part
        if self.rank == source:
            dist.send(torch.tensor([len(part)]), dst=0, group=self._control)
            dist.send(torch.frombuffer(bytearray(part), dtype=torch.uint8), dst=0, group=self._control)
            return part
        size = torch.zeros(1, dtype=torch.int64)
        dist.recv(size, src=source, group=self._control)
        found = torch.empty(int(size), dtype=torch.uint8)
        dist.recv(found, src=source, group=self._control)
        return found.numpy().tobytes()

    def sum(self, value: float) -> float:
        """The sum of one number over all ranks."""
        if self._control is None:
            return value
        total = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(total, group=self._control)
        return float(total)


def all_ranks(here: bool) -> bool:
    """Whether it holds on every rank of the job, which all call this. Without a job: whether it holds here."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return here
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    vote = torch.tensor([int(here)], device=device)
    dist.all_reduce(vote, op=dist.ReduceOp.MIN)
    return bool(vote.item())


def _store(rank: int, size: int) -> Any:
    """Where the ranks meet; None: at their launcher's."""
    if size == 1:
        # No launcher: a store inside this process needs no port.
        return dist.HashStore()  # type: ignore[attr-defined]
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return None
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    listening = socket.create_server((host, port)).detach() if rank == 0 else None
    store = dist.TCPStore(  # type: ignore[attr-defined]
        host, port, size, is_master=rank == 0, timeout=_MEET_FOR, wait_for_workers=False, master_listen_fd=listening
    )
    _meet(store, rank, size)
    # What they tell each other when they begin to calculate waits for whoever loads last.
    store.set_timeout(_FOLLOW_FOR)
    return store


def _meet(store: Any, rank: int, size: int) -> None:
    """Returns when all ranks are there. Raises `TrainerError`: some did not come."""
    keys = [f"millrace/there/{each}" for each in range(size)]
    store.set(keys[rank], "")
    try:
        store.wait(keys, _MEET_FOR)
    except dist.DistStoreError as error:
        missing = ", ".join(str(each) for each, key in enumerate(keys) if not store.check([key]))
        raise TrainerError(
            f"rank {rank} of {size} waited {_MEET_FOR} for ranks that did not come: {missing}. Their own logs say why; "
            "WORLD_SIZE must be the number of ranks that are started"
        ) from error


def _leave() -> None:
    if Ranks.under_way:
        return
    # A rank that has died already must not keep this one from ending.
    with suppress(RuntimeError, AssertionError):
        dist.destroy_process_group()

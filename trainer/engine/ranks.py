"""The processes of one training job: rank 0 commands, the others follow. Only bytes and tensors travel, never pickles.

Started by any standard launcher (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), or alone without one.
"""

import atexit
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

import torch
import torch.distributed as dist

_FOLLOW_FOR = timedelta(days=30)
"""Ranks wait for rank 0's next command, which waits for episodes: no deadline of theirs may end a quiet run."""


class Ranks:
    """Membership in the job, for as long as the process lives: DeepSpeed keeps the groups that it has seen."""

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        os.environ.setdefault("LOCAL_RANK", "0")
        self.device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if torch.cuda.is_available() else "cpu")
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        if not dist.is_initialized():
            backend = "nccl" if self.device.type == "cuda" else "gloo"
            if self.size == 1:
                # No launcher: a store inside this process needs no port.
                store = dist.HashStore()  # type: ignore[attr-defined]
                dist.init_process_group(backend, store=store, rank=0, world_size=1, timeout=_FOLLOW_FOR)
            else:
                dist.init_process_group(backend, timeout=_FOLLOW_FOR)
            atexit.register(_leave)
        self._control = dist.new_group(backend="gloo", timeout=_FOLLOW_FOR) if self.size > 1 else None

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

    def sum(self, value: float) -> float:
        """The sum of one number over all ranks."""
        if self._control is None:
            return value
        total = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(total, group=self._control)
        return float(total)


def _leave() -> None:
    # A rank that has died already must not keep this one from ending.
    with suppress(RuntimeError, AssertionError):
        dist.destroy_process_group()

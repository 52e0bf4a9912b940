"""The run's streams: where they are, what they keep, and how long silence may last."""

import re
from dataclasses import dataclass
from typing import Literal

from schemas.ids import RunName, subject_token
from schemas.requirement import require
from schemas.server_url import server_urls


@dataclass(frozen=True, kw_only=True)
class BusConfig:
    run: RunName = RunName("millrace")
    """Names the run's streams and subjects."""
    url: str = ""
    """Of the NATS server or cluster, `tls://` beyond this machine; `file:/PATH`: a file says on which machine it is, that its
    node writes; empty: the run folder's own server."""
    keys: str = ""
    """Folder with the `<role>.seed` files for `url`, of the roles that this node has; each readable by its owner only."""
    ca_file: str = ""
    """Certificates that vouch for the servers of `url`; empty: those that this machine trusts."""
    credentials_file: str = ""
    """Instead of `keys`: NATS credentials of an operator's account; readable by its owner only."""
    guest_runs: tuple[RunName, ...] = ()
    """Further runs that the run folder's own server has accounts for, with the same settings."""
    rubrics: tuple[str, ...] = ("environment_v1",)
    """Rubrics that judges score this run by: each has its queue of trajectories, and the judges' key may write it. The trainer
    and the feeder go by the first; the others stand beside it. Left out: that of `judge_config`."""
    sync_interval: str = "2m"
    """How often the run folder's own server forces its files to disk; `always`: before every acknowledgement."""
    num_shards: int = 1
    """EPISODES streams; 8 to 16 above about 1,000 live episodes with large screenshots."""
    replicas: int = 1
    """Servers that each stream is on: 1 on one machine, 3 or 5 in a cluster."""
    episodes_max_age_s: float = 7 * 86400.0
    """Seconds that chains and their screenshots are kept; 0: for ever."""
    results_max_age_s: float = 30 * 86400.0
    """Seconds that trajectories, judgements and judges' calls are kept; 0: for ever. Announced versions are kept for ever."""
    steps_max_age_s: float = 120.0
    """Seconds that a wake-up waits for a policy worker; the slot that waits for the answer queues it again."""
    heartbeats_max_age_s: float = 15.0
    """Seconds that a worker's newest heartbeat is kept; each says that it is there every 2 seconds."""
    advisories_max_age_s: float = 7 * 86400.0
    """Seconds that dead letters and errors that nobody foresaw are kept; 0: for ever."""
    episodes_max_gb: float = 0.0
    """Gigabytes (1e9 bytes) that each EPISODES stream may hold; 0: as much as the server has. A full stream drops nothing:
    its writers wait until age makes room."""
    results_max_gb: float = 0.0
    """Gigabytes that TRAJECTORIES, JUDGED and CALLS may hold each; 0: as much as the server has."""
    weights: Literal["path", "bus"] = "path"
    """How policies get new weights: from the folder that the trainer announces, or, where that is not their disk, `bus`: the
    trainer also stores the files that policies load on the bus. A policy that can read the folder always takes it."""
    weights_kept: int = 2
    """Latest versions kept on the bus, and on the disk of a policy that fetched them."""
    weights_max_gb: float = 0.0
    """Gigabytes that WEIGHTS may hold: room for `weights_kept` + 1 versions; 0: as much as the server has."""
    weights_timeout_s: float = 60.0
    """Seconds for which a policy waits for a part of announced weights; then it goes on with those it has."""
    max_queued_tasks: int = 0
    """Tasks that are queued or being played; the feeder waits for room. 0: as many as the feeder admits."""
    max_payload_bytes: int = 8 * 1024 * 1024
    """Largest message of the run folder's own server."""
    task_ack_wait_s: float = 8.0
    """A browser worker that is silent for so long loses its episode to another."""
    step_ack_wait_s: float = 3.0
    """A policy worker that is silent for so long loses a step from the shared queue to another."""
    judge_ack_wait_s: float = 60.0
    """A judge that is silent for so long loses its trajectory to another."""
    request_timeout_s: float = 10.0
    """Seconds until a request is sent again, at the longest: first it is after 2, then each time after twice as long. An
    operation of the bus fails after three times as many in which it could try."""

    def __post_init__(self) -> None:
        require(1 <= self.num_shards <= 64, f"bus_config.num_shards is {self.num_shards}: write 1 to 64")
        require(self.replicas in (1, 3, 5), f"bus_config.replicas is {self.replicas}: write 1, 3 or 5")
        for name in ("episodes_max_gb", "results_max_gb", "weights_max_gb", "max_queued_tasks"):
            require(getattr(self, name) >= 0, f"bus_config.{name} is {getattr(self, name)}: write 0 (no limit) or more")
        for name in ("episodes_max_age_s", "results_max_age_s", "advisories_max_age_s"):
            require(getattr(self, name) >= 0, f"bus_config.{name} is {getattr(self, name)}: write 0 (for ever) or more")
        for name, least in (("steps_max_age_s", 1), ("heartbeats_max_age_s", 5)):
            require(getattr(self, name) >= least, f"bus_config.{name} is {getattr(self, name)}: write {least} or more")
        require(self.weights_kept >= 2, f"bus_config.weights_kept is {self.weights_kept}: write 2 or more")
        for name in ("weights_timeout_s", "task_ack_wait_s", "step_ack_wait_s", "judge_ack_wait_s", "request_timeout_s"):
            require(getattr(self, name) > 0, f"bus_config.{name} is {getattr(self, name)}: write more than 0")
        require(self.max_payload_bytes > 0, f"bus_config.max_payload_bytes is {self.max_payload_bytes}: write more than 0")
        require(
            not (self.keys and self.credentials_file), "bus_config.keys and bus_config.credentials_file exclude each other"
        )
        if self.url and not self.url.startswith("file:"):
            server_urls(self.url)
        subject_token(self.run, what="bus_config.run")
        require(self.rubrics != (), "bus_config.rubrics is empty: write the rubric of the run's judges")
        for rubric in self.rubrics:
            subject_token(rubric, what="bus_config.rubrics")
        require(
            re.fullmatch(r"always|[1-9][0-9]*(ms|s|m)", self.sync_interval) is not None,
            f"bus_config.sync_interval is {self.sync_interval!r}: write always, or a time such as 30s or 2m",
        )

    @property
    def trained_rubric(self) -> str:
        """Whose judgements count: trainer, feeder, figures and audit go by them alone. It is the same as long as the run."""
        return self.rubrics[0]

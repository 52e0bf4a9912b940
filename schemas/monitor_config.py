"""Configures when a monitor raises an alert, and how much it keeps in mind."""

from dataclasses import dataclass

from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class MonitorConfig:
    worker_silent_s: float = 10.0
    """A worker counts as silent so long after its last heartbeat: five of them are missing."""
    worker_forgotten_s: float = 300.0
    """A silent worker is shown so long; then it has left."""
    missing_s: float = 20.0
    """Work may wait so long for a role that nobody fills: longer than a supervisor takes to start one again."""
    stalled_s: float = 300.0
    """A role that is heard may do nothing for so long while its work waits; longer than a slow page or answer takes."""
    trainer_stalled_s: float = 3600.0
    """The same of a trainer with a complete batch: one optimizer step of a large model takes minutes."""
    queue_growth_s: float = 300.0
    """A queue that has grown over so long is growing: waves of an iteration are shorter."""
    queue_growth_least: int = 50
    """Deliveries that it has to have grown by, and to twice its length."""
    mismatch_share: float = 0.5
    """Share of `trainer_config.max_mismatch_k3` or `_far` from which on the mismatch is told: the run stops at the whole."""
    least_parse_rate: float = 0.8
    """Of the latest training episodes' steps."""
    most_judge_errors: float = 0.05
    """Share of the latest judgements without a verdict; they are lost for training."""
    least_window: int = 32
    """Judgements before a share of them is told."""
    most_full: float = 0.85
    """Share of a stream's or disk's room that may be in use; halfway from there to full, the alert becomes critical."""
    server_silent_s: float = 10.0
    """The server may leave requests unanswered for so long: a restart takes less."""
    slow_server_s: float = 1.0
    """Median time of an answer of the server; a healthy one takes milliseconds."""
    most_replica_lag: int = 1000
    """Operations that a follower of a stream may be behind."""
    staleness_wait_s: float = 900.0
    """The feeder may wait for the trainer at the staleness bound for so long."""
    version_delay: float = 3.0
    """A version is late when it takes so many times the median of those before."""
    most_clock_skew_s: float = 2.0
    """Seconds that a worker's clock may differ from the server's: what it writes down is dated by it."""
    unexpected_shown_s: float = 900.0
    """An error that nobody foresaw is told for so long after a worker met it."""
    raise_after_s: float = 5.0
    """An alert is raised when its condition has held for so long."""
    clear_after_s: float = 30.0
    """It is withdrawn when the condition has not held for so long, so that it does not flap."""
    alerts: tuple[str, ...] = ()
    """Rules of your own, each as `module:name`, beside those of Millrace and of installed packages."""
    ended_cell_s: float = 20.0
    """An episode that has ended and is judged is shown for so long."""
    max_cells: int = 20_000
    """Episodes that are kept one by one; more are counted only. One takes about 1 KB."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require(name == "alerts" or value > 0, f"monitor_config.{name} is {value}: write a number above 0")
        for name in ("mismatch_share", "least_parse_rate", "most_judge_errors", "most_full"):
            value = getattr(self, name)
            require(value <= 1, f"monitor_config.{name} is {value}: write a share, above 0 and at most 1")
        require(
            self.version_delay > 1, f"monitor_config.version_delay is {self.version_delay}: write a number above 1, as in 3"
        )

"""Configures the archiver: where it writes, and how often."""

from dataclasses import dataclass

from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class ArchiveConfig:
    folder: str = ""
    """Where the archiver writes; empty: `archive/` in the run's folder."""
    episodes_per_part: int = 256
    """Episodes, or judgements, after which a file is written."""
    seconds_per_part: float = 300.0
    """A file is written at the latest so long after its first episode was read."""

    def __post_init__(self) -> None:
        require(self.episodes_per_part > 0, f"archive_config.episodes_per_part is {self.episodes_per_part}: write 1 or more")
        require(self.seconds_per_part > 0, "archive_config.seconds_per_part must be above 0")

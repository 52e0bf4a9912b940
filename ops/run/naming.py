"""What a run is called on screens and in figures."""

from pathlib import Path

from schemas.config import Config


def shown_name(config: Config) -> str:
    """By its folder where it has a server of its own: there every quickstart is `quickstart`, in whatever folder. On a server
    of several, by `bus_config.run`, which no other run has there."""
    return config.bus_config.run if config.bus_config.url else Path(config.save_path).resolve().name

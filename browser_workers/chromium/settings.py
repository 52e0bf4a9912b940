"""What every tab of a browser is told."""

from collections.abc import Callable
from dataclasses import dataclass

from schemas.config import BrowserConfig, ContextConfig, EnvConfig


def nothing_is_blocked(host: str) -> str:
    """Where no rule stands between pages and the network."""
    return ""


@dataclass(frozen=True, slots=True)
class TabSettings:
    config: BrowserConfig
    env: EnvConfig = EnvConfig()
    context: ContextConfig = ContextConfig()
    why_blocked: Callable[[str], str] = nothing_is_blocked
    """Why no page may reach a host; empty when it may."""

    @property
    def timeout_s(self) -> float:
        """Deadline of one operation."""
        return self.env.operation_timeout

    @property
    def viewport(self) -> tuple[int, int]:
        return self.config.viewport_width, self.config.viewport_height

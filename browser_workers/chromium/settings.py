"""Holds what every tab of a browser is told."""

from collections.abc import Callable
from dataclasses import dataclass, field

from browser_workers.logins import Logins
from browser_workers.network.egress import Egresses
from browser_workers.network.outside import Network
from schemas.browser_config import BrowserConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig


def nothing_is_known(host: str) -> str:
    """Where nothing stands between pages and the network."""
    return ""


@dataclass(frozen=True, slots=True)
class TabSettings:
    config: BrowserConfig
    env: EnvConfig = EnvConfig()
    context: ContextConfig = ContextConfig()
    network: Network = Network()
    egresses: Egresses = field(default_factory=lambda: Egresses(()))
    logins: Logins = field(default_factory=lambda: Logins(""))
    why_blocked: Callable[[str], str] = nothing_is_known
    """Why a host could lately not be reached, in a sentence; empty when nothing is known."""

    @property
    def timeout_s(self) -> float:
        """Deadline of one operation."""
        return self.env.operation_timeout

    @property
    def viewport(self) -> tuple[int, int]:
        return self.config.viewport_width, self.config.viewport_height

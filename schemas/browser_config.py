"""Browsers: which one, what its pages may reach, what it may use, and the screenshots it takes."""

import re
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Literal
from urllib.parse import urlsplit

from schemas.requirement import require

_HOST = re.compile(r"(?!.*\.\.)[\w.-]+", re.UNICODE)


def _is_network(text: str) -> bool:
    try:
        return "/" in text and bool(ip_network(text))
    except ValueError:
        return False


def _require_hosts(key: str, hosts: tuple[str, ...]) -> None:
    """Names, or addresses, and nothing else."""
    for host in hosts:
        try:
            is_host = _HOST.fullmatch(host.strip()) is not None or bool(ip_address(host.strip("[]")))
        except ValueError:
            is_host = False
        require(
            is_host and not host.startswith("."),
            f"{key} has {host!r}, which is no host: write a name such as example.org (its subdomains are meant too) "
            "or an address, without scheme, port, path or wildcard",
        )


def _require_devtools_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_web = parts.scheme in ("http", "https", "ws", "wss") and bool(host) and parts.port != 0
    except ValueError:
        is_web = False
    require(
        is_web,
        f"browser_config.cdp_url is {url!r}: write the browser's DevTools address, as in http://127.0.0.1:9222 or wss://host/path",
    )
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    require(
        local or parts.scheme in ("https", "wss"),
        f"browser_config.cdp_url leads to {host} unencrypted: write https:// or wss:// for a browser on another machine "
        "(http and ws are for this machine, also for the near end of a tunnel)",
    )


@dataclass(frozen=True, kw_only=True)
class BrowserConfig:
    engine: Literal["playwright", "simulated"] = "playwright"
    """`simulated`: no Chromium at all, see `simulation_config`."""
    executable: str = ""
    """Path of a Chromium; empty: the cheapest one found."""
    cdp_url: str = ""
    """Drive the browser behind this DevTools address (http, https, ws or wss) instead of starting one; beyond this machine
    only https and wss."""
    cdp_token_env_var: str = "MILLRACE_CDP_TOKEN"  # noqa: S105 - a name, not a secret
    """Environment variable with the bearer token for `cdp_url`, if there is one."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that pages may reach besides their task's own, as in `example.org` (with its subdomains); empty: all."""
    denied_hosts: tuple[str, ...] = ()
    """Hosts that no page may reach, whatever `allowed_hosts` says."""
    private_hosts: tuple[str, ...] = ()
    """What pages may reach of loopback, private and other addresses that are not public: names with their subdomains, as in
    `shop.corp.example`, which may lead to loopback and private addresses; addresses and networks, as in `10.20.0.0/16`.
    A task's website that is such an address itself, or `localhost`, is reached anyway, at its own port."""
    max_episodes: int = 1000
    """Episodes after which a browser is replaced; 0: no limit."""
    max_memory_mb: int = 0
    """Memory (PSS, units of 2**20 bytes) of a browser with all its processes from which on it is replaced; 0: half of what the
    machine, or this process's control group, has."""
    page_memory_mb: int = 1024
    """Memory of one page's process at which that page is ended; its scripts' heap may grow to twice that; 0: no limit."""
    suites: tuple[str, ...] = ()
    """Task suites of your own, each as `module:name`, beside those of Millrace and of installed packages."""
    viewport_width: int = 1280
    """Of a page and its screenshots, in pixels."""
    viewport_height: int = 768
    """The same."""
    screenshot_format: Literal["jpeg", "png"] = "jpeg"
    """Of the screenshots that the policy sees."""
    jpeg_quality: int = 80
    """1 to 100."""
    eval_share: float = 0.1
    """Share of the times that a free slot looks for an evaluation episode first; otherwise it looks for training first."""
    resend_s: float = 3.0
    """Seconds after which a step that nobody has taken is queued again, and after which a policy worker that took it and has
    gone silent loses it to any other. (One whose process is gone loses it within a second.)"""

    def __post_init__(self) -> None:
        require(self.viewport_width > 0 and self.viewport_height > 0, "browser_config.viewport_* must be above 0")
        require(1 <= self.jpeg_quality <= 100, f"browser_config.jpeg_quality is {self.jpeg_quality}: write 1 to 100")
        require(self.resend_s > 0, f"browser_config.resend_s is {self.resend_s}: write more than 0")
        _require_hosts("browser_config.allowed_hosts", self.allowed_hosts)
        _require_hosts("browser_config.denied_hosts", self.denied_hosts)
        _require_hosts("browser_config.private_hosts", tuple(host for host in self.private_hosts if not _is_network(host)))
        if self.cdp_url:
            _require_devtools_address(self.cdp_url)
        for name in ("max_episodes", "max_memory_mb", "page_memory_mb"):
            value = getattr(self, name)
            require(value >= 0, f"browser_config.{name} is {value}: write 0 or a number above it")

"""Browsers: which one, what its pages may reach, what it may use, and the screenshots it takes."""

from dataclasses import dataclass, field
from typing import Literal

from schemas.browser_requirements import (
    is_network,
    require_block_policy,
    require_hosts,
    require_identity,
    require_proxies,
)
from schemas.provider_requirements import require_provider
from schemas.requirement import require
from schemas.site_limit import EVERY_OTHER, SiteLimit, require_sites

_MOST_NETWORK_MB = 100.0
_DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class BrowserConfig:
    engine: Literal["playwright", "simulated"] = "playwright"
    """`simulated`: no Chromium at all, see `simulation_config`."""
    executable: str = ""
    """Path of a Chromium; empty: the cheapest one found."""
    provider: Literal["auto", "local", "cdp", "browserbase"] = "auto"
    """Whose browsers: `local`: each worker's own; `cdp`: those behind `cdp_url` or `cdp_urls`; `browserbase`: a session of
    that service for each episode; `auto`: `cdp` where addresses are written, else `local`."""
    cdp_url: str = ""
    """Drive the browser behind this DevTools address (http, https, ws or wss) instead of starting one; beyond this machine
    only https and wss."""
    cdp_token_env_var: str = "MILLRACE_CDP_TOKEN"  # noqa: S105 - a name, not a secret
    """Environment variable with the bearer token for `cdp_url` or `cdp_urls`, if there is one."""
    cdp_urls: tuple[str, ...] = ()
    """Several of them in place of `cdp_url`: an episode goes to the one that has fewest of its worker's."""
    provider_url: str = "https://api.browserbase.com"
    """Of the provider's API."""
    provider_key_env_var: str = "BROWSERBASE_API_KEY"
    """Environment variable of every browser worker with the key for it."""
    provider_project: str = ""
    """Project of the account; empty: the key's own."""
    provider_region: str = ""
    """Where sessions run, as in `eu-central-1`; empty: the provider's default."""
    provider_proxies: bool = False
    """Sessions go out through the provider's proxies, which it charges for."""
    provider_lease_s: float = 1800.0
    """Seconds, 60 to 21600, after which the provider ends a session by itself; workers end what nobody holds before that. An
    episode (`env_config.task_timeout_minutes`) may take 80 % of it."""
    provider_wait_s: float = 300.0
    """Seconds for which an episode waits for a session while the account is full or the provider fails, at most half of
    `env_config.task_timeout_minutes`; then it is begun again, as behind every failure."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that pages may reach besides their task's own, as in `example.org` (with its subdomains); empty: all."""
    denied_hosts: tuple[str, ...] = ()
    """Hosts that no page may reach, whatever `allowed_hosts` says."""
    private_hosts: tuple[str, ...] = ()
    """What pages may reach of loopback, private and other addresses that are not public: names with their subdomains, as in
    `shop.corp.example`, which may lead to loopback and private addresses; addresses and networks, as in `10.20.0.0/16`.
    A task's website that is such an address itself, or `localhost`, is reached anyway, at its own port."""
    proxies: tuple[str, ...] = ()
    """Proxies by which episodes reach public addresses, one each, as in `http://proxy.example:3128` and
    `socks5://user@proxy.example:1080`, without passwords; `environment`: the one in the worker's `HTTPS_PROXY`,
    `HTTP_PROXY` or `ALL_PROXY`, but for hosts in its `NO_PROXY`."""
    proxies_file: str = ""
    """File with more of them, a line each, with their passwords; on every node with browsers, readable by its owner alone."""
    proxy_per: Literal["episode", "site"] = "episode"
    """`episode`: each takes the next one; `site`: all that begin on a site take the same one, on every worker."""
    proxy_dns: Literal["local", "remote"] = "local"
    """Who looks names up: the worker, which judges the addresses that it found; or the proxy, which may find others."""
    proxy_cooldown_s: float = 60.0
    """Seconds for which a proxy gets no new episode after it could not be reached, refused its password, or was silent; and
    none on a site that has blocked it."""
    on_block: Literal["end", "other_identity", "hook"] = "end"
    """What becomes of an episode that its site blocks. `end`: it is excluded, as `blocked`; `other_identity`: it is played
    anew by another proxy, where there is one; `hook`: `block_hook` may have the block lifted. What that does not help
    ends."""
    block_retries: int = 2
    """Times that an episode is played anew by another proxy."""
    block_hook: str = ""
    """Who is told of a block, as `module:name`; `wait`: nobody, the page is watched until somebody has lifted it."""
    block_hook_timeout_s: float = 300.0
    """Seconds that the hook may take for one block; they are not the task's time."""
    challenge_wait_s: float = 5.0
    """Seconds that a page may check its visitor by itself before it counts as a block."""
    site_limits: dict[str, SiteLimit] = field(default_factory=dict)
    """How often all workers together ask a site for pages, by site as in `example.org` (with its subdomains); `default`: every
    other. Pages that the workers play themselves have no limit."""
    site_wait_s: float = 600.0
    """Seconds that an action waits for its turn at a site before its episode fails; they are not the task's time."""
    locale: str = ""
    """What pages are told, as in `en-GB`: language, numbers and dates; empty: Chromium's own."""
    timezone: str = ""
    """As in `Europe/Berlin`; empty: the worker's own."""
    geolocation: str = ""
    """Degrees of latitude and longitude, as in `52.52,13.40`, for pages that ask for the place; empty: they are denied it."""
    user_agent: str = ""
    """What browsers call themselves; empty: Chromium's own name."""
    color_scheme: Literal["light", "dark", "no-preference"] = "light"
    """What pages are told to prefer."""
    logins_folder: str = ""
    """Folder with a file for each site on which episodes begin signed in, as `shop.example.json`: cookies and local storage in
    Playwright's form; on every node with browsers, each readable by its owner alone, and read anew when it has changed."""
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

    record_network: bool = False
    """Keep what an episode's pages send and get (HAR 1.2), for judges such as `webarena_verified_v1`. Without cookies,
    credentials, passwords and the like, and without requests for pictures, scripts, styles, fonts and media."""
    network_max_entries: int = 2000
    """Requests of an episode that are kept; the record says how many more there were, and no such judge goes by it then."""
    network_max_mb: float = 2.0
    """Megabytes (1e6 bytes) of an episode's record before it is compressed; what is beyond is left out, and said."""

    def __post_init__(self) -> None:
        require(
            self.network_max_entries > 0,
            f"browser_config.network_max_entries is {self.network_max_entries}: write 1 or more",
        )
        require(
            0 < self.network_max_mb <= _MOST_NETWORK_MB,
            f"browser_config.network_max_mb is {self.network_max_mb:g}: write more than 0 and at most {_MOST_NETWORK_MB:g}",
        )
        require(self.viewport_width > 0 and self.viewport_height > 0, "browser_config.viewport_* must be above 0")
        require(1 <= self.jpeg_quality <= 100, f"browser_config.jpeg_quality is {self.jpeg_quality}: write 1 to 100")
        require(0 <= self.eval_share <= 1, f"browser_config.eval_share is {self.eval_share}: write 0 to 1")
        require(self.resend_s > 0, f"browser_config.resend_s is {self.resend_s}: write more than 0")
        require_hosts("browser_config.allowed_hosts", self.allowed_hosts)
        require_hosts("browser_config.denied_hosts", self.denied_hosts)
        require_hosts("browser_config.private_hosts", tuple(host for host in self.private_hosts if not is_network(host)))
        require_proxies(self.proxies)
        require_provider(self)
        require(
            self.proxy_cooldown_s >= 0,
            f"browser_config.proxy_cooldown_s is {self.proxy_cooldown_s:g}: write 0 or a number of seconds above it",
        )
        require_block_policy(self.on_block, self.block_hook, has_others=len(self.proxies) > 1 or bool(self.proxies_file))
        require_hosts("browser_config.site_limits", tuple(site for site in self.site_limits if site != EVERY_OTHER))
        require_sites(self.site_limits)
        for name in ("challenge_wait_s", "block_hook_timeout_s", "site_wait_s", "block_retries"):
            value = getattr(self, name)
            require(0 <= value < _DAY_S, f"browser_config.{name} is {value:g}: write 0 or a number above it, below {_DAY_S:g}")
        require_identity(self.locale, self.timezone, self.geolocation, self.user_agent)
        for name in ("max_episodes", "max_memory_mb", "page_memory_mb"):
            value = getattr(self, name)
            require(value >= 0, f"browser_config.{name} is {value}: write 0 or a number above it")

    @property
    def devtools(self) -> tuple[str, ...]:
        """Addresses of all browsers that others run."""
        return self.cdp_urls or ((self.cdp_url,) if self.cdp_url else ())

    @property
    def provided_by(self) -> Literal["local", "cdp", "browserbase"]:
        if self.provider != "auto":
            return self.provider
        return "cdp" if self.devtools else "local"

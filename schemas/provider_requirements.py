"""What a configuration requires of whoever provides its browsers, and what a browser elsewhere cannot be asked for."""

from typing import Protocol
from urllib.parse import urlsplit

from schemas.browser_requirements import is_local, require_devtools_address, require_near
from schemas.requirement import require

HELD = 0.8
"""Of its lease a session is held at most: the rest is for ending it, whoever does."""
_SHORTEST_S, _LONGEST_S = 60.0, 21600.0
"""Browserbase's own bounds of a session's time."""
_BEYOND_THE_GATE = {
    "proxies": "leave it out, and write browser_config.provider_proxies=true for the provider's own",
    "proxies_file": "leave it out, and write browser_config.provider_proxies=true for the provider's own",
    "private_hosts": "leave it out: the browser reaches nothing of your network",
    "locale": "leave it out: the provider's browser says what it is",
    "timezone": "leave it out: the provider's browser says what it is",
    "geolocation": "leave it out: the provider's browser says what it is",
    "user_agent": "leave it out: the provider's browser says what it is",
    "logins_folder": "leave it out: sign in where the provider keeps what its browsers remember",
}
"""What a session's default context, in a browser that no gate of ours is a proxy of, cannot have."""


class ProviderKeys(Protocol):
    """What of `schemas.browser_config.BrowserConfig` is looked at."""

    @property
    def provider(self) -> str: ...
    @property
    def provided_by(self) -> str: ...
    @property
    def cdp_url(self) -> str: ...
    @property
    def cdp_urls(self) -> tuple[str, ...]: ...
    @property
    def devtools(self) -> tuple[str, ...]: ...
    @property
    def proxies(self) -> tuple[str, ...]: ...
    @property
    def proxies_file(self) -> str: ...
    @property
    def provider_url(self) -> str: ...
    @property
    def provider_key_env_var(self) -> str: ...
    @property
    def provider_lease_s(self) -> float: ...
    @property
    def provider_wait_s(self) -> float: ...


def require_provider(config: ProviderKeys) -> None:
    addresses = config.devtools
    for key, urls in (("cdp_url", filter(None, [config.cdp_url])), ("cdp_urls", config.cdp_urls)):
        for url in urls:
            require_devtools_address(f"browser_config.{key}", url)
            require_near(f"browser_config.{key}", url, has_proxies=bool(config.proxies or config.proxies_file))
    require(len(set(addresses)) == len(addresses), "browser_config.cdp_urls has an address twice: write each once")
    require(
        not (config.cdp_url and config.cdp_urls),
        "browser_config.cdp_url and browser_config.cdp_urls both name browsers: write all of them into cdp_urls",
    )
    require(
        config.provider != "cdp" or addresses != (),
        "browser_config.provider is cdp and no browser is named: write its DevTools address into browser_config.cdp_url, or "
        "those of several into browser_config.cdp_urls",
    )
    require(
        config.provider in ("auto", "cdp") or addresses == (),
        f"browser_config.provider is {config.provider} and browser_config.cdp_url or cdp_urls name other browsers: leave them "
        "out, or write cdp for the provider",
    )
    require(
        _SHORTEST_S <= config.provider_lease_s <= _LONGEST_S,
        f"browser_config.provider_lease_s is {config.provider_lease_s:g}: write {_SHORTEST_S:g} to {_LONGEST_S:g}, which is "
        "what Browserbase allows",
    )
    require(config.provider_wait_s >= 0, f"browser_config.provider_wait_s is {config.provider_wait_s:g}: write 0 or more")
    if config.provided_by == "browserbase":
        _require_sessions(config)


def _require_sessions(config: ProviderKeys) -> None:
    for key, instead in _BEYOND_THE_GATE.items():
        require(
            not getattr(config, key),
            f"browser_config.{key} has no effect on the browsers of browser_config.provider={config.provider}, whose pages do "
            f"not pass the gate: {instead}",
        )
    require(
        config.provider_key_env_var != "",
        "browser_config.provider_key_env_var is empty: write the name of the environment variable that has the key, as in "
        "BROWSERBASE_API_KEY",
    )
    parts = urlsplit(config.provider_url)
    require(
        parts.scheme == "https" or (parts.scheme == "http" and is_local(parts.hostname or "")),
        f"browser_config.provider_url is {config.provider_url!r}: write the API's address with https://, since the key goes "
        "there",
    )


def require_episodes_fit(config: ProviderKeys, task_timeout_minutes: float) -> None:
    """An episode is over before its session's time is."""
    longest_s = HELD * config.provider_lease_s
    require(
        config.provided_by != "browserbase" or task_timeout_minutes * 60 <= longest_s,
        f"env_config.task_timeout_minutes is {task_timeout_minutes:g}, and a session is held for {longest_s / 60:g} min "
        f"at most ({HELD:.0%} of browser_config.provider_lease_s): write less, or a lease of "
        f"{task_timeout_minutes * 60 / HELD:g} s (at most {_LONGEST_S:g})",
    )

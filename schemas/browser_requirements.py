"""What the browsers' configuration requires of hosts, addresses and places that people write."""

import re
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from schemas.proxy_address import parse_proxy
from schemas.requirement import require

FROM_ENVIRONMENT = "environment"
"""In place of a proxy's address: what `HTTPS_PROXY` and its like say."""
_HOST = re.compile(r"(?!.*\.\.)[\w.-]+", re.UNICODE)
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_TIMEZONE = re.compile(r"[A-Za-z]+(/[A-Za-z0-9_+-]+)*")
_MOST_NORTH, _MOST_EAST = 90.0, 180.0


def is_network(text: str) -> bool:
    try:
        return "/" in text and bool(ip_network(text))
    except ValueError:
        return False


def require_hosts(key: str, hosts: tuple[str, ...]) -> None:
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


def require_devtools_address(key: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_web = parts.scheme in ("http", "https", "ws", "wss") and bool(host) and parts.port != 0
    except ValueError:
        is_web = False
    require(
        is_web,
        f"{key} is {url!r}: write the browser's DevTools address, as in http://127.0.0.1:9222 or wss://host/path",
    )
    require(
        is_local(host) or parts.scheme in ("https", "wss"),
        f"{key} leads to {host} unencrypted: write https:// or wss:// for a browser on another machine "
        "(http and ws are for this machine, also for the near end of a tunnel)",
    )


def require_near(key: str, url: str, *, has_proxies: bool) -> None:
    """Pages of a browser on another machine do not pass the gate, which alone goes through proxies."""
    require(
        not has_proxies or is_local(urlsplit(url).hostname or ""),
        f"browser_config.proxies and browser_config.proxies_file have no effect on the browser at {key}, "
        "which is on another machine: give it its proxy there, and leave them out",
    )


def is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_proxies(proxies: tuple[str, ...]) -> None:
    for number, proxy in enumerate(proxies, 1):
        if proxy == FROM_ENVIRONMENT:
            continue
        try:
            address = parse_proxy(proxy)
        except ValueError as error:
            require(False, f"entry {number} of browser_config.proxies is no proxy: {error}; or {FROM_ENVIRONMENT}")
        else:
            require(
                not address.password,
                f"entry {number} of browser_config.proxies has a password, which everybody who reads the run could see: "
                "write the whole address into a file that its owner alone may read, and name that file in "
                "browser_config.proxies_file",
            )


def require_block_policy(on_block: str, hook: str, *, has_others: bool) -> None:
    require(
        on_block != "hook" or bool(hook),
        "browser_config.on_block is hook, and browser_config.block_hook names none: write module:name, or wait",
    )
    require(
        on_block != "other_identity" or has_others,
        "browser_config.on_block is other_identity, and there is no other: write several browser_config.proxies, or a "
        "browser_config.proxies_file",
    )


def require_place(geolocation: str) -> None:
    try:
        latitude, longitude = map(float, geolocation.split(","))
    except ValueError:
        latitude = longitude = float("nan")
    require(
        abs(latitude) <= _MOST_NORTH and abs(longitude) <= _MOST_EAST,
        f"browser_config.geolocation is {geolocation!r}: write degrees of latitude and longitude, as in 52.52,13.40",
    )


def require_identity(locale: str, timezone: str, geolocation: str, user_agent: str) -> None:
    """Of what pages are told."""
    require(
        not locale or _LOCALE.fullmatch(locale) is not None,
        f"browser_config.locale is {locale!r}: write a language tag such as en-GB",
    )
    require(
        not timezone or _TIMEZONE.fullmatch(timezone) is not None,
        f"browser_config.timezone is {timezone!r}: write a name such as Europe/Berlin",
    )
    if geolocation:
        require_place(geolocation)
    require(
        user_agent.isprintable() and user_agent.isascii(),
        "browser_config.user_agent has characters that no request may carry: write printable ASCII",
    )

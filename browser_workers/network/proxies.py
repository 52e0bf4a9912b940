"""The proxies that a worker's configuration names: in itself, in a file of secrets, in the environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from browser_workers.network.egress import Egresses
from browser_workers.network.rules import normal_host
from schemas.browser_config import BrowserConfig
from schemas.browser_requirements import FROM_ENVIRONMENT
from schemas.errors import ConfigurationError
from schemas.private_file import read_private
from schemas.proxy_address import ProxyAddress, parse_proxy

_VARIABLES = ("https_proxy", "http_proxy", "all_proxy")
"""The first that is set counts for every connection. Capital letters count as well."""
_EXCEPTED = "no_proxy"
_ALL = "*"


def egresses_of(config: BrowserConfig, environment: Mapping[str, str] = os.environ) -> Egresses:
    """Raises `ConfigurationError` for a file that cannot be read or that others may read, and for what is no proxy."""
    written = [parse_proxy(proxy) for proxy in config.proxies if proxy != FROM_ENVIRONMENT]
    wants_environment = FROM_ENVIRONMENT in config.proxies
    excepted = _excepted(environment) if wants_environment else ()
    return Egresses(
        [*written, *(_from_environment(environment) if wants_environment else ()), *_from_file(config.proxies_file)],
        per_site=config.proxy_per == "site",
        looks_up=config.proxy_dns == "remote",
        excepted=excepted,
        cooldown_s=config.proxy_cooldown_s,
    )


def _from_file(file: str) -> list[ProxyAddress]:
    if not file:
        return []
    path = Path(file).expanduser()
    lines = [line.strip() for line in read_private(path).split("\n")]
    proxies = [_parsed(line, f"line {number} of {path}") for number, line in enumerate(lines, 1) if line and line[0] != "#"]
    if not proxies:
        raise ConfigurationError(f"browser_config.proxies_file: {path} has no proxy: write one a line")
    return proxies


def _from_environment(environment: Mapping[str, str]) -> tuple[ProxyAddress, ...]:
    """Empty where nothing is set, or all hosts are excepted."""
    if _ALL in _said(environment, _EXCEPTED).split(","):
        return ()
    for variable in _VARIABLES:
        if said := _said(environment, variable):
            return (_parsed(said if "://" in said else f"http://{said}", f"the environment's {variable.upper()}"),)
    return ()


def _excepted(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names with their subdomains; networks, which nobody writes for public addresses, are passed over."""
    hosts = (each.strip().lstrip("*.") for each in _said(environment, _EXCEPTED).split(","))
    return tuple(normal_host(host) for host in hosts if host and "/" not in host)


def _said(environment: Mapping[str, str], variable: str) -> str:
    return environment.get(variable, "") or environment.get(variable.upper(), "")


def _parsed(text: str, where: str) -> ProxyAddress:
    try:
        return parse_proxy(text)
    except ValueError as error:
        raise ConfigurationError(f"{where} is no proxy: {error}") from error

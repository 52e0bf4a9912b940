"""Assigns a model, an address and a key to each kind of question.

Invariant: a key goes to the endpoint that it was named for and to no other, and never over a line that others can read.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final
from urllib.parse import urlsplit

from schemas.errors import ConfigurationError
from schemas.judge_config import OpenAIConfig, QuestionConfig

GROUPS: Final = ("keypoint_detection", "blocking_detection", "evaluation")
"""The kinds of question, by their keys in `openai_config`."""

PLACEHOLDER_KEY: Final = "none"
"""Sent to an endpoint on this machine that asks for no key."""


@dataclass(frozen=True, slots=True)
class _Provider:
    base_url: str
    domain: str


_PROVIDERS: Final = {
    "GEMINI_API_KEY": _Provider("https://generativelanguage.googleapis.com/v1beta/openai/", "googleapis.com"),
    "OPENAI_API_KEY": _Provider("https://api.openai.com/v1", "openai.com"),
}
"""By the variable that usually holds a provider's key."""

_DEFAULT_VARIABLE: Final = next(field.default for field in fields(OpenAIConfig) if field.name == "openai_api_key_env_var")

_MANY_SMALL: Final = ("keypoint_detection", "blocking_detection")
_LIGHTER: Final = {("generativelanguage.googleapis.com", "gemini-3-flash-preview"): "gemini-2.5-flash-lite"}
"""By host and model: who answers `_MANY_SMALL` where no model is named for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where one kind of question goes."""

    model: str
    base_url: str
    key_env_var: str | None
    """Variable that holds the key; None: it asks for none."""
    setting: str
    """The part of the configuration that says so, for error texts."""

    @property
    def is_local(self) -> bool:
        return _is_loopback(_host(self.base_url))

    @property
    def is_openai(self) -> bool:
        return _belongs_to(_PROVIDERS["OPENAI_API_KEY"], self.base_url)


def resolve_addresses(config: OpenAIConfig) -> dict[str, Address]:
    """The address of each of `GROUPS`; what a group leaves empty is as in `openai_config` itself, or lighter (`_LIGHTER`).

    Raises:
        ConfigurationError: an address is missing, is no URL, is readable by others, or has no key of its own.
    """
    found = {group: _resolve_group(config, group, getattr(config, group)) for group in GROUPS}
    for group in _MANY_SMALL:
        lighter = _LIGHTER.get((_host(found[group].base_url), found[group].model))
        if lighter is not None and not getattr(config, group).model:
            found[group] = replace(found[group], model=lighter)
    return found


def key_of(address: Address, environ: Mapping[str, str]) -> str | None:
    """The key to send; None: any text will do.

    Raises:
        ConfigurationError: there is none, or it is no key.
    """
    if address.key_env_var is None:
        return None
    key = environ.get(address.key_env_var, "").strip()
    if not key:
        if address.is_local:
            return None
        raise ConfigurationError(
            f"{address.key_env_var} is not set: put the key for {address.base_url} there, "
            f"or name another variable in {address.setting}.openai_api_key_env_var"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigurationError(
            f"{address.key_env_var} holds characters that no key has (spaces, line breaks, accents): set it again, "
            f"or name another variable in {address.setting}.openai_api_key_env_var"
        )
    return key


def _resolve_group(config: OpenAIConfig, group: str, own: QuestionConfig) -> Address:
    setting = f"openai_config.{group}"
    model, variable, base_url = own.model or config.model, own.openai_api_key_env_var, own.base_url
    if variable in ("", config.openai_api_key_env_var) and not base_url:
        return _default_address(config, model)
    if not base_url:
        base_url = _base_url_of_variable(config, variable, setting)
    _check_url(base_url, f"{setting}.base_url")
    if variable:
        return Address(model=model, base_url=base_url, key_env_var=variable, setting=setting)
    return Address(model=model, base_url=base_url, key_env_var=_inherited_variable(config, base_url, setting), setting=setting)


def _default_address(config: OpenAIConfig, model: str) -> Address:
    variable, base_url, setting = config.openai_api_key_env_var, config.base_url, "openai_config"
    if not base_url:
        if variable not in _PROVIDERS:
            raise ConfigurationError(
                f"openai_config.openai_api_key_env_var is {variable or 'empty'}, which tells no provider: "
                "write openai_config.base_url"
            )
        return Address(model=model, base_url=_PROVIDERS[variable].base_url, key_env_var=variable, setting=setting)
    _check_url(base_url, "openai_config.base_url")
    # Nobody wrote the default variable for this address: what it holds is for its own provider.
    if variable == _DEFAULT_VARIABLE and not _belongs_to(_PROVIDERS[variable], base_url):
        variable = _no_variable(base_url, setting, f"{variable} holds the key of another provider")
    elif not variable:
        variable = _no_variable(base_url, setting, "openai_config.openai_api_key_env_var is empty")
    return Address(model=model, base_url=base_url, key_env_var=variable or None, setting=setting)


def _base_url_of_variable(config: OpenAIConfig, variable: str, setting: str) -> str:
    """Of a group that names a key of its own but no address."""
    if variable in _PROVIDERS:
        return _PROVIDERS[variable].base_url
    if config.base_url:
        return config.base_url
    raise ConfigurationError(
        f"{setting}.openai_api_key_env_var is {variable}, which tells no provider: write {setting}.base_url"
    )


def _inherited_variable(config: OpenAIConfig, base_url: str, setting: str) -> str | None:
    """Of a group that names an address but no key."""
    default = _default_address(config, config.model)
    if _origin(default.base_url) == _origin(base_url):
        return default.key_env_var
    return _no_variable(base_url, setting, f"the key of {default.base_url} is not sent there") or None


def _no_variable(base_url: str, setting: str, reason: str) -> str:
    """Empty for an address that needs no key."""
    if _is_loopback(_host(base_url)):
        return ""
    raise ConfigurationError(
        f"{setting}.base_url is {base_url}, and {reason}: "
        f"name the variable that holds its key in {setting}.openai_api_key_env_var"
    )


def _check_url(url: str, setting: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    # First of all, since what stands there must not be shown.
    if "@" in url or parts.query or parts.fragment:
        raise ConfigurationError(f"{setting} holds more than an address: write https://host/path, and the key in a variable")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(f"{setting} is {url!r}, which is no address: write https://host/path")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ConfigurationError(
            f"{setting} is {url}: the key and the screenshots would be readable on the way; "
            f"write https://, or open a tunnel and write http://127.0.0.1:port/v1"
        )


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _belongs_to(provider: _Provider, url: str) -> bool:
    host = _host(url)
    return host == provider.domain or host.endswith(f".{provider.domain}")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

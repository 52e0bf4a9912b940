"""Provides the session provider that a configuration names."""

import os
from collections.abc import Mapping

from browser_workers.providers.addresses import Addresses
from browser_workers.providers.local import Local
from browser_workers.providers.provider import Provider
from schemas.browser_config import BrowserConfig
from schemas.errors import ConfigurationError
from schemas.extras import require_extra

_KEY_HEADER = "X-BB-API-Key"


def provider_of(config: BrowserConfig, environment: Mapping[str, str] = os.environ) -> Provider:
    """Raises `ConfigurationError` for a key that is not there."""
    match config.provided_by:
        case "local":
            return Local()
        case "cdp":
            return Addresses(config.devtools, environment.get(config.cdp_token_env_var, ""))
        case "browserbase":
            return _browserbase(config, environment)


def _browserbase(config: BrowserConfig, environment: Mapping[str, str]) -> Provider:
    require_extra("httpx2", "browser")
    from browser_workers.providers.api import Api
    from browser_workers.providers.browserbase import Browserbase

    key = environment.get(config.provider_key_env_var, "").strip()
    if not key:
        raise ConfigurationError(
            f"browser_config.provider is browserbase and there is no key: set {config.provider_key_env_var} in the "
            "environment of every browser worker (browser_config.provider_key_env_var names the variable)"
        )
    return Browserbase(config, Api(config.provider_url, header=_KEY_HEADER, key=key, key_env_var=config.provider_key_env_var))

"""Decides which websites a browser elsewhere can open. Pure."""

from browser_workers.browser import Opening
from browser_workers.network.addresses import Kind, assumed, kind
from browser_workers.network.rules import Rules, endpoint
from browser_workers.suites import UnknownWebsite
from schemas.browser_config import BrowserConfig


def require_reachable(opening: Opening, config: BrowserConfig) -> None:
    """Raises `UnknownWebsite` for a private one: to a provider's browser that is a machine of the provider's."""
    target = endpoint(opening.url) if opening.site is None and config.provided_by == "browserbase" else None
    if target is None:
        return
    private = any(kind(address) is not Kind.PUBLIC for address in assumed(target.host))
    if private or (not assumed(target.host) and Rules().refusal_of_private_name(target.host)):
        raise UnknownWebsite(
            f"{opening.url} is private, and browsers of browser_config.provider={config.provider} see the provider's network "
            "in its place: play such tasks with provider=local"
        )

"""The endpoints of a configuration: clients that are closed in the end, and gates, shared by what goes to one address."""

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio
import openai

from judges.endpoint.addresses import PLACEHOLDER_KEY, Address, key_of, resolve_addresses
from judges.endpoint.bounded import bound
from judges.endpoint.gate import Gate
from judges.endpoint.openai_endpoint import OpenAIEndpoint
from schemas.judge_config import OpenAIConfig

_CLOSING_S = 5.0


@dataclass(frozen=True, slots=True)
class _Line:
    """To one address with one key."""

    client: openai.AsyncOpenAI
    gate: Gate


@asynccontextmanager
async def open_endpoints(config: OpenAIConfig, environ: Mapping[str, str]) -> AsyncIterator[Mapping[str, OpenAIEndpoint]]:
    """By the names of the groups in `openai_config`. Nothing is asked of them yet.

    Raises:
        ConfigurationError: an address or a key is missing.
    """
    addresses = {group: (address, key_of(address, environ)) for group, address in resolve_addresses(config).items()}
    lines: dict[tuple[str, str | None], _Line] = {}
    models: dict[tuple[str, str | None, str], OpenAIEndpoint] = {}
    endpoints: dict[str, OpenAIEndpoint] = {}
    rng = random.Random()  # noqa: S311 - spreads retries
    async with AsyncExitStack() as stack:
        for group, (address, key) in addresses.items():
            base_url = address.base_url.rstrip("/")
            if (base_url, key) not in lines:
                client = _client(address, key, config.timeout_s)
                stack.push_async_callback(_close, client)
                lines[base_url, key] = _Line(client, Gate(config.max_concurrent))
            line = lines[base_url, key]
            if (base_url, key, address.model) not in models:
                models[base_url, key, address.model] = OpenAIEndpoint(
                    client=line.client, gate=line.gate, address=address, config=config, key=key, rng=rng
                )
            endpoints[group] = models[base_url, key, address.model]
        yield endpoints


def _client(address: Address, key: str | None, timeout_s: float) -> openai.AsyncOpenAI:
    client = openai.AsyncOpenAI(
        api_key=key or PLACEHOLDER_KEY,
        base_url=address.base_url,
        timeout=timeout_s,
        max_retries=0,
        # Screenshots go to the address that was written and to no other. A proxy is for what lies beyond this machine.
        http_client=openai.DefaultAsyncHttpxClient(
            follow_redirects=False, trust_env=not address.is_local, event_hooks={"response": [bound]}
        ),
    )
    if not address.is_openai:
        # The client takes them from the environment, and they are nobody else's business.
        client.organization = client.project = None
        client._custom_headers = {}
    return client


async def _close(client: openai.AsyncOpenAI) -> None:
    with anyio.move_on_after(_CLOSING_S, shield=True):
        await client.close()

"""Asks a provider's HTTP API, and tells its failures apart: what may have been done from what was not.

Invariant: the key goes to the configured host alone, and into no message.
"""

from collections.abc import Mapping
from http import HTTPStatus

import httpx2

from browser_workers.providers.provider import AccountFull, OutcomeUnknown, SessionEnded
from schemas.errors import BrowserLost, ConfigurationError

_ANSWER_S = 30.0
_CONNECT_S = 10.0
_LONGEST = 300
_ENDED = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.GONE)
_NOT_ALLOWED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class Api:
    def __init__(self, url: str, *, header: str, key: str, key_env_var: str, answer_s: float = _ANSWER_S) -> None:
        """`header`: of requests, with the key in it."""
        self._key, self._key_env_var = key, key_env_var
        timeout = httpx2.Timeout(answer_s, connect=min(_CONNECT_S, answer_s))
        self._client = httpx2.AsyncClient(base_url=url, headers={header: key}, timeout=timeout, follow_redirects=False)

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
        of_session: bool = False,
    ) -> bytes:
        """The answer's body. `of_session`: there is nothing at `path` any more where that session has ended.

        Raises:
            AccountFull, SessionEnded, OutcomeUnknown: as they say.
            BrowserLost: nothing was asked, since nobody was there.
            ConfigurationError: the key, the account or the request will not do, however often it is asked.
        """
        try:
            response = await self._client.request(method, path, json=body, params=query)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise BrowserLost(f"the session provider cannot be reached: {self._told(str(error))}") from error
        except httpx2.HTTPError as error:
            raise OutcomeUnknown(f"the session provider did not answer: {type(error).__name__}") from error
        if response.is_success:
            return response.content
        if of_session and response.status_code in _ENDED:
            raise SessionEnded(f"the provider has ended the session ({response.status_code})")
        raise self._failure(response)

    def _failure(self, response: httpx2.Response) -> Exception:
        status, said = response.status_code, self._told(response.text)
        if status in _NOT_ALLOWED:
            return ConfigurationError(
                f"the session provider refuses the key in {self._key_env_var} ({status}): write one that may open sessions of "
                "the project into that environment variable"
            )
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return AccountFull("the account has as many sessions as it may", again_after_s=_seconds(response))
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
            return OutcomeUnknown(f"the session provider failed ({status}): {said}")
        return ConfigurationError(f"the session provider refuses what browser_config.provider_* asks for ({status}): {said}")

    def _told(self, text: str) -> str:
        return text.replace(self._key, "…")[:_LONGEST]


def _seconds(response: httpx2.Response) -> float:
    try:
        return max(0.0, float(response.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0

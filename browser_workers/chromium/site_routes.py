"""Answers a page's requests from a `Site` where no gate can: the browser is elsewhere, or the site is one of HTTPS."""

from contextlib import suppress
from urllib.parse import urlsplit

import anyio
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Route

from browser_workers.site import Site, SiteRequest


async def answer(route: Route, site: Site) -> None:
    """Fulfils one intercepted request; a page that is gone meanwhile is nobody's failure."""
    request = route.request
    parts = urlsplit(request.url)
    response = site.respond(
        SiteRequest(
            path=parts.path,
            query=parts.query,
            method=request.method,
            headers=request.headers,
            body=request.post_data_buffer or b"",
        )
    )
    await anyio.sleep(response.after_s)
    with suppress(PlaywrightError):
        if response.breaks_off:
            await route.abort("connectionreset")
            return
        headers = {"content-type": response.content_type, **response.headers}
        await route.fulfill(status=response.status, headers=headers, body=response.body)

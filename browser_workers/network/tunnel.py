"""A connection through a proxy: HTTP's CONNECT (RFC 9110, section 9.3.6), or SOCKS 5 (RFC 1928, RFC 1929).

Plain HTTP goes through CONNECT as well, so that a proxy sees no more than an address and what it passes on.
"""

import asyncio
import base64
import socket
from collections.abc import Callable
from http import HTTPStatus

import anyio
import h11
from python_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError, ProxyType
from python_socks.async_.asyncio import Proxy

from browser_workers.network.pipe import End
from schemas.proxy_address import ProxyAddress

_ANSWER_S = 12.0
"""Less than the gate gives a connection, so that it is known whose silence it was."""
_PIECE = 4096
_LONGEST = 255
"""Characters of a user or a password for which SOCKS has room (RFC 1929)."""


class ProxyFailed(OSError):
    """The proxy's own fault; the sentence names it without its password."""


class ProxySilent(ProxyFailed):
    """It said nothing in time: its own fault, or that of the site behind it."""


class _Refused(OSError):
    """The proxy works, and says that the site cannot be reached."""


async def through(proxy: ProxyAddress, end: Callable[[], End], host: str, port: int) -> End:
    """A connection to `host`, which the proxy looks up if it is a name. Raises `ProxyFailed`, or `OSError` for the site."""
    opening = _http if proxy.scheme == "http" else _socks
    try:
        with anyio.fail_after(_ANSWER_S):
            connected = await opening(proxy, host, port)
    except TimeoutError as error:
        raise ProxySilent(f"the proxy {proxy.name} did not answer within {_ANSWER_S:g} s") from error
    return (await asyncio.get_running_loop().create_connection(end, sock=connected))[1]


async def _socks(proxy: ProxyAddress, host: str, port: int) -> socket.socket:
    if not all(said.isascii() and len(said) <= _LONGEST for said in (proxy.user, proxy.password)):
        raise ProxyFailed(f"the proxy {proxy.name} takes users and passwords of at most {_LONGEST} ASCII characters alone")
    asking = Proxy(ProxyType.SOCKS5, proxy.host, proxy.port, proxy.user or None, proxy.password if proxy.user else None)
    try:
        connected: socket.socket = await asking.connect(host, port, timeout=_ANSWER_S)
    except ProxyTimeoutError as error:
        raise TimeoutError from error
    except ProxyConnectionError as error:
        raise _not_reached(proxy, error) from error
    except ProxyError as error:
        # What it answers about the site has a code, what it answers about whoever asks has none.
        said = f"the proxy {proxy.name} answered: {error}"
        raise (ProxyFailed(said) if error.error_code is None else _Refused(said)) from error
    except UnicodeDecodeError as error:
        raise ProxyFailed(f"the proxy {proxy.name} answered what is no SOCKS") from error
    except ValueError as error:
        raise _Refused(f"{host} is a name that the proxy {proxy.name} cannot be told") from error
    except OSError as error:
        raise ProxyFailed(f"the proxy {proxy.name} broke off: {error}") from error
    return connected


async def _http(proxy: ProxyAddress, host: str, port: int) -> socket.socket:
    try:
        connected = await _connected(proxy)
    except OSError as error:
        raise _not_reached(proxy, error) from error
    try:
        status = await _asked(connected, _request(proxy, host, port))
    except (OSError, h11.RemoteProtocolError) as error:
        connected.close()
        raise ProxyFailed(f"the proxy {proxy.name} broke off: {error}") from error
    except BaseException:
        connected.close()
        raise
    if 200 <= status < 300:
        return connected
    connected.close()
    said = f"the proxy {proxy.name} answered {status}"
    raise ProxyFailed(said) if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED else _Refused(said)


def _request(proxy: ProxyAddress, host: str, port: int) -> h11.Request:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    headers = [("Host", target)]
    if proxy.user:
        credentials = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
        headers.append(("Proxy-Authorization", f"Basic {credentials}"))
    return h11.Request(method="CONNECT", target=target, headers=headers)


async def _connected(proxy: ProxyAddress) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
    failed: OSError = OSError("no address is known for it")
    for family, kind, protocol, _, address in found:
        tried = socket.socket(family, kind, protocol)
        tried.setblocking(False)
        try:
            await loop.sock_connect(tried, address)
        except OSError as error:
            tried.close()
            failed = error
        except BaseException:
            tried.close()
            raise
        else:
            return tried
    raise failed


async def _asked(connected: socket.socket, request: h11.Request) -> int:
    """The status of the answer, whose head is all that was read."""
    loop = asyncio.get_running_loop()
    connection = h11.Connection(h11.CLIENT)
    await loop.sock_sendall(connected, connection.send(request) + connection.send(h11.EndOfMessage()))
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await loop.sock_recv(connected, _PIECE))
        elif isinstance(event, h11.Response):
            if connection.trailing_data[0]:
                raise OSError("it sent more than its answer")
            return event.status_code
        elif isinstance(event, h11.ConnectionClosed):
            raise OSError("it closed the connection")


def _not_reached(proxy: ProxyAddress, error: OSError) -> ProxyFailed:
    return ProxyFailed(f"the proxy {proxy.name} cannot be reached: {error.strerror or error}")

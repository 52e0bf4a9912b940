"""A local web site of 16 pages of about 53 to 280 KB, for measuring browsers. `python -m benchmarks.browser_site` serves it.

Every page has the same fixed header, so that the benchmark's steps know where things are: links to other pages, a button that
opens a panel, and a search field. Everything is drawn from the page's number; nothing may be cached between contexts.
"""

import io
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from PIL import Image, ImageDraw

NUM_PAGES = 16
NUM_LINKS = 5
_WORDS = (
    *("river", "stone", "lantern", "harbour", "meadow", "copper", "willow", "signal"),
    *("orchard", "canvas", "thunder", "velvet", "marble", "compass", "ember", "garden"),
)
_STYLE = """
body { margin: 0; font: 15px/1.5 "DejaVu Sans", Arial, sans-serif; color: #223; background: #f4f5f8; }
header { position: fixed; inset: 0 0 auto 0; height: 56px; background: #fff; box-shadow: 0 1px 6px #0003; z-index: 9; }
header a, header button, header input { position: absolute; top: 10px; height: 36px; box-sizing: border-box; }
header a { width: 110px; line-height: 36px; text-align: center; border-radius: 8px; text-decoration: none; color: #125; }
header a:hover { background: #e4ecf8; }
header button { left: 1130px; width: 120px; border: 0; border-radius: 8px; background: #2458a6; color: #fff; }
header input { left: 760px; width: 340px; padding: 0 12px; border: 1px solid #bcc5d2; border-radius: 8px; }
#panel { position: fixed; top: 66px; right: 20px; width: 300px; padding: 16px; background: #fff; border-radius: 12px;
         box-shadow: 0 4px 20px #0004; display: none; }
#panel.open { display: block; }
main { margin: 80px auto; width: 1120px; display: grid; grid-template-columns: repeat(3, 1fr); gap: 20px; }
article { background: #fff; border-radius: 14px; padding: 16px; box-shadow: 0 1px 4px #0002; }
article img { width: 100%; height: 160px; object-fit: cover; border-radius: 10px; }
.tags { display: flex; flex-wrap: wrap; gap: 6px; padding: 0; list-style: none; }
.tag a { padding: 2px 10px; border-radius: 99px; background: #eef2f9; color: #335; text-decoration: none; font-size: 13px; }
table { width: 100%; border-collapse: collapse; font-size: 13px; }
th, td { padding: 4px 6px; border-bottom: 1px solid #e6e8ee; text-align: left; }
.foot { display: flex; justify-content: space-between; margin-top: 10px; }
h2 { font-size: 17px; margin: 10px 0 4px; }
"""
_SCRIPT = """
const panel = document.getElementById("panel");
document.getElementById("menu").addEventListener("click", () => {
  panel.innerHTML = Array.from({ length: 40 }, (_, i) => `<div>entry ${i + 1} of ${document.title}</div>`).join("");
  panel.classList.toggle("open");
});
for (const card of document.querySelectorAll("article"))
  card.addEventListener("mouseenter", () => { card.style.background = "#fbfcff"; });
"""


@dataclass(frozen=True)
class _Plan:
    num_cards: int
    num_words: int
    screenshot_kb: float


def _plan(page: int) -> _Plan:
    """Sizes that grow with the page's number: most of a page is markup, the rest screenshots."""
    share = page / (NUM_PAGES - 1)
    return _Plan(num_cards=round(8 + 34 * share), num_words=round(30 + 20 * share), screenshot_kb=2.2 + 1.3 * share)


def link_of(page: int, position: int) -> int:
    """Where the header's link at `position` leads from `page`."""
    return (page + 3 * position + 1) % NUM_PAGES


@cache
def html(page: int) -> bytes:
    draw, plan = random.Random(page), _plan(page)
    links = "".join(
        f'<a style="left:{20 + 120 * position}px" href="/page/{link_of(page, position)}">Page {link_of(page, position)}</a>'
        for position in range(NUM_LINKS)
    )
    cards = "".join(_card(page, card, draw, plan.num_words) for card in range(plan.num_cards))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Page {page}</title><link rel=stylesheet href=/style.css>"
        f'<body><header>{links}<form action="/search"><input name=q aria-label=Search></form><button id=menu>Menu</button>'
        f"</header><div id=panel></div><main>{cards}</main><script src=/script.js></script>"
    ).encode()


def _card(page: int, card: int, draw: random.Random, num_words: int) -> str:
    words = draw.choices(_WORDS, k=num_words)
    tags = "".join(f'<li class="tag"><a href="/search?q={draw.randrange(NUM_PAGES)}">{word}</a></li>' for word in words[:8])
    rows = "".join(
        f"<tr><th>{name}</th><td><span>{draw.randrange(1000)}</span> <em>{draw.choice(_WORDS)}</em></td></tr>"
        for name in words[:10]
    )
    text = " ".join(f"<b>{word}</b>" if draw.random() < 0.15 else word for word in words)
    return (
        f'<article id="card-{card}"><img src="/screenshot/{page}/{card}.jpg" alt=""><h2>{" ".join(words[:3]).title()}</h2>'
        f'<ul class="tags">{tags}</ul><p>{text}</p><table><tbody>{rows}</tbody></table>'
        f'<div class="foot"><span>{draw.randrange(1, 500)} in stock</span><button>Add</button></div></article>'
    )


@cache
def screenshot(page: int, card: int) -> bytes:
    draw, plan = random.Random(f"{page}|{card}"), _plan(page)
    image = Image.new("RGB", (360, 200), tuple(draw.randrange(60, 220) for _ in range(3)))
    pen, encoded = ImageDraw.Draw(image), io.BytesIO()
    while len(encoded.getvalue()) < plan.screenshot_kb * 1024:
        for _ in range(20):
            x, y, size = draw.randrange(360), draw.randrange(200), draw.randrange(4, 40)
            pen.ellipse((x, y, x + size, y + size), fill=tuple(draw.randrange(256) for _ in range(3)))
        encoded = io.BytesIO()
        image.save(encoded, "jpeg", quality=80)
    return encoded.getvalue()


def page_bytes(page: int) -> int:
    """Everything that loading a page transfers."""
    screenshots = sum(len(screenshot(page, card)) for card in range(_plan(page).num_cards))
    return len(html(page)) + len(_STYLE) + len(_SCRIPT) + screenshots


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        match parts.path.strip("/").split("/"):
            case ["page", number] if number.isdigit():
                self._send("text/html; charset=utf-8", html(int(number) % NUM_PAGES))
            case ["search"]:
                asked = parse_qs(parts.query).get("q", ["0"])[0]
                self._send("text/html; charset=utf-8", html(int(asked) % NUM_PAGES if asked.isdigit() else 0))
            case ["screenshot", page, card]:
                self._send("image/jpeg", screenshot(int(page), int(card.removesuffix(".jpg"))))
            case ["style.css"]:
                self._send("text/css", _STYLE.encode())
            case ["script.js"]:
                self._send("text/javascript", _SCRIPT.encode())
            case _:
                self.send_error(404)

    def _send(self, content_type: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a line per request would be most of the server's work."""


@contextmanager
def browser_site() -> Iterator[str]:
    """Serves the site from a thread; yields its address. Raises `OSError` when no port is free."""
    for page in range(NUM_PAGES):
        page_bytes(page)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()

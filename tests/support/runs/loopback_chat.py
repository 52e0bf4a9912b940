"""A chat's incoming webhook on loopback, which now and then does not take a message."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Chat:
    """`answers`: statuses of the next requests; behind them every message is taken."""

    url: str
    answers: list[int]
    texts: list[str] = field(default_factory=list)
    taken: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """One for each of `texts`."""


@contextmanager
def loopback_chat(answers: Sequence[int] = ()) -> Iterator[Chat]:
    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
            status = chat.answers.pop(0) if chat.answers else 200
            if status == 200:
                chat.texts.append(text)
            self.send_response(status)
            self.end_headers()
            if status == 200:
                chat.taken.release()

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        chat = Chat(f"http://127.0.0.1:{server.server_port}/hook", list(answers))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield chat
        server.shutdown()
        thread.join()

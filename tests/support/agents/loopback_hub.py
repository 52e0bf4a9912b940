"""A hub of models on loopback, which answers as the Hugging Face Hub does, and fails as it is told to."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class LoopbackHub:
    """Has one repository with the branch `main`."""

    repository: str
    files: Mapping[str, bytes]
    gated: bool = False
    token: str = ""
    """Without it, nobody sees the repository."""
    num_breaks: int = 0
    """So many answers break off in the middle."""
    num_errors: int = 0
    """So many answers are 503."""
    url: str = ""
    fetched: list[tuple[str, int]] = field(default_factory=list)
    """Files, and the byte that an answer began with."""


@contextmanager
def loopback_hub(hub: LoopbackHub) -> Iterator[LoopbackHub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        if hub.num_errors:
            hub.num_errors -= 1
            return self._refuse(503, "")
        if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            return self._refuse(401, "RepoNotFound")
        api, files, stored = f"/api/models/{hub.repository}", f"/{hub.repository}/resolve/", "/stored/"
        if path.startswith(stored):
            return self._content(path.removeprefix(stored), body=body)
        if not path.startswith((api, files)):
            return self._refuse(404, "RepoNotFound")
        if path in (api, f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
            return self._json({"id": hub.repository, "modelId": hub.repository, "sha": COMMIT, "siblings": []})
        if hub.gated and path.startswith(files):
            return self._refuse(403, "GatedRepo")
        if path == f"{api}/tree/{COMMIT}":
            return self._json([self._entry(name, data) for name, data in hub.files.items()])
        name = path.removeprefix(f"{files}{COMMIT}/")
        if name in hub.files:
            return self._file(name, body=body)
        return self._refuse(404, "RevisionNotFound")

    def _entry(self, name: str, data: bytes) -> dict[str, object]:
        entry: dict[str, object] = {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
        if name.endswith(".safetensors"):
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 135}
        return entry

    def _file(self, name: str, *, body: bool) -> None:
        """What is large is stored elsewhere, and redirected to."""
        data = self.hub.files[name]
        if not name.endswith(".safetensors"):
            return self._content(name, body=body)
        self.send_response(302)
        self._describe(data)
        self.send_header("Location", f"{self.hub.url}/stored/{name}")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def _content(self, name: str, *, body: bool) -> None:
        data, asked = self.hub.files[name], self.headers.get("Range", "")
        begin = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
        self.send_response(206 if asked else 200)
        self._describe(data)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        if not body:
            return
        self.hub.fetched.append((name, begin))
        if self.hub.num_breaks and name.endswith(".safetensors"):
            self.hub.num_breaks -= 1
            self.wfile.write(data[begin : begin + (len(data) - begin) // 2])
            self.close_connection = True
            self.connection.close()
            return
        self.wfile.write(data[begin:])

    def _describe(self, data: bytes) -> None:
        etag = hashlib.sha256(data).hexdigest()
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Linked-Etag", f'"{etag}"')
        self.send_header("X-Linked-Size", str(len(data)))
        self.send_header("X-Repo-Commit", COMMIT)

    def _json(self, answer: object) -> None:
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        del format, args

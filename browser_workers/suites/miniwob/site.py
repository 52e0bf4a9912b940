"""The files of the installed `miniwob` package as a site. Its Python is never imported: that needs Selenium."""

import mimetypes
from functools import cache
from importlib import metadata, resources
from pathlib import Path

from browser_workers.site import HTML, NOT_FOUND, SiteRequest, SiteResponse

ORIGIN = "http://miniwob.millrace.test"
"""Never looked up: the worker answers for it."""
_FOLDER = "miniwob/html/"
_CORE = b'core/core.js"></script>'
_SCRIPTS = (
    "begin.js",
    *(f"oracles/{name}.js" for name in ("steps", "pointing", "forms", "widgets", "messages", "dragging")),
)
_KEPT = {"cache-control": "max-age=86400"}
"""What pages share is asked for once in a browser context."""
_EXTRA_TYPES = {".woff": "font/woff", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


class MiniWobSite:
    """Satisfies `browser_workers.site.Site`. A page comes with the script that begins its problem behind `core.js`."""

    origin = ORIGIN

    def __init__(self, files: dict[str, Path]) -> None:
        self._files = files
        """By path on the site."""
        folder = resources.files("browser_workers.suites.miniwob")
        self._begin = b"".join(b"<script>" + (folder / name).read_bytes() + b"</script>" for name in _SCRIPTS)
        self._response = cache(self._read)

    def respond(self, request: SiteRequest) -> SiteResponse:
        file = self._files.get(request.path)
        return NOT_FOUND if file is None else self._response(file)

    def _read(self, file: Path) -> SiteResponse:
        body = file.read_bytes()
        if file.suffix == ".html":
            return SiteResponse(body.replace(_CORE, _CORE + self._begin, 1), content_type=HTML)
        guessed = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return SiteResponse(body, content_type=_EXTRA_TYPES.get(file.suffix, guessed), headers=_KEPT)


def installed_files() -> dict[str, Path]:
    """The package's files by path on the site; empty where it is not installed."""
    try:
        listed = metadata.files("miniwob") or ()
    except metadata.PackageNotFoundError:
        return {}
    return {
        "/" + file.as_posix().removeprefix(_FOLDER): Path(str(file.locate()))
        for file in listed
        if file.as_posix().startswith(_FOLDER)
    }


def page_paths(files: dict[str, Path]) -> dict[str, str]:
    """Where each page is on the site, by the name that the package gives it, as in `click-test` and `flight.AA`."""
    small = {path.removeprefix("/miniwob/").removesuffix(".html"): path for path in files if _is_small_page(path)}
    flights = {f"flight.{path.split('/')[2]}": path for path in files if path.endswith("/wrapper.html")}
    return dict(sorted({**small, **flights}.items()))


def _is_small_page(path: str) -> bool:
    return path.startswith("/miniwob/") and path.endswith(".html")

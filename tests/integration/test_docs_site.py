"""The documentation as a site: built strictly, complete in itself, and every link, anchor and picture of it is there."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
_LOADED = {"link": "href", "script": "src", "img": "src", "source": "src", "iframe": "src"}
"""What a page loads by itself, and the attribute that says from where."""


class Page(HTMLParser):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors, self.links, self.loaded = {""}, set[str](), set[str]()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if _LOADED.get(tag) in given:
            self.loaded.add(given[_LOADED[tag]])


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """As `make docs` does, besides the folders."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(ROOT / "docs"), str(source), str(out)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    out = tmp_path_factory.mktemp("site")
    built = build(ROOT / "docs", out)
    assert (built.returncode, built.stderr) == (0, "")
    return {file: Page(file) for file in out.rglob("*.html")}


def test_every_page_has_its_place(site: dict[Path, Page]) -> None:
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= {file.stem for file in site}


def test_every_link_anchor_and_picture_is_there(site: dict[Path, Page]) -> None:
    broken = []
    for file, page in site.items():
        for target in page.links | page.loaded:
            parts = urlsplit(target)
            if parts.scheme in {"http", "https", "mailto", "data"}:
                continue
            at = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            anchors = site[at].anchors if at in site else {""}
            if not at.is_file() or unquote(parts.fragment) not in anchors:
                broken.append((file.name, target))
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site: dict[Path, Page]) -> None:
    elsewhere = {target for page in site.values() for target in page.loaded if urlsplit(target).netloc}
    assert elsewhere == set()


def test_the_front_page_is_the_readme(site: dict[Path, Page]) -> None:
    front = next(page for file, page in site.items() if file.name == "index.html")
    assert any(picture.endswith("quickstart.svg") for picture in front.loaded)
    assert {"quickstart.html", "your_own_run.html#eight-gpus"} <= front.links


def test_what_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# A page\n\n[a](no_page.md) [b](#no-anchor) ![c](no_picture.png)\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert [name for name in ("no_page", "no-anchor", "no_picture") if name not in built.stderr] == []

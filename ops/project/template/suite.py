"""Your site: the pages in site/, as a suite that tasks name in `website`.

`garden:plants` is site/plants.html. What follows `press=` is a way through the task, in the words that stand on its buttons
and links; only the scripted player of demonstrations and tests sees it.

Other pages: put them into site/. A site that a server of yours has needs no suite: write its address as `website`.
More: docs/extending.md, examples/own_suite.py.
"""

from pathlib import Path
from urllib.parse import parse_qs

from browser_workers.browser import Opening
from browser_workers.site import Documents
from browser_workers.suites import UnknownWebsite, suite
from browser_workers.suites.shop.steps import Press, Solution

ORIGIN = "http://garden.example.test"  # never looked up: browser workers answer for it
PAGES = {f"/{file.stem}": file.read_bytes() for file in (Path(__file__).parent / "site").glob("*.html")}


@suite("garden")
class Garden:
    def resolve(self, page: str, query: str) -> Opening:
        if f"/{page}" not in PAGES:
            raise UnknownWebsite(f"garden:{page}: there is no site/{page}.html")
        way = Solution([Press(words) for words in parse_qs(query).get("press", [])])
        return Opening(url=f"{ORIGIN}/{page}", site=Documents(ORIGIN, PAGES), solution=way)

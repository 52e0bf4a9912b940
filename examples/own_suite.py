"""A task suite of one's own: a page with two doors, one of which is locked. Its tasks have `website: doors:two?key=left`.

browser_config:
  suites: [examples/own_suite.py:doors]
"""

from urllib.parse import parse_qs

from browser_workers.browser import Opening
from browser_workers.site import Documents
from browser_workers.suites import UnknownWebsite, suite

ORIGIN = "http://doors.example.test"
PAGE = b"""<!doctype html><title>Doors</title>
<button id="left">left</button> <button id="right">right</button>
<script>
  const open = new URLSearchParams(location.search).get("key")
  window.doors = {done: false, reward: 0, utterance: `Open the ${open} door.`}
  for (const door of document.querySelectorAll("button"))
    door.onclick = () => { window.doors.done = true; window.doors.reward = door.id === open ? 1 : 0 }
</script>"""


@suite("doors")
class Doors:
    """`doors:two?key=left` or `right`: the page itself says when it is done, and what that was worth."""

    def __init__(self) -> None:
        self._site = Documents(origin=ORIGIN, documents={"/two": PAGE})

    def resolve(self, page: str, query: str) -> Opening:
        if page != "two" or parse_qs(query).get("key", [""])[0] not in ("left", "right"):
            raise UnknownWebsite(f"doors:{page}?{query}: write doors:two?key=left or doors:two?key=right")
        return Opening(url=f"{ORIGIN}/{page}?{query}", site=self._site, probe="window.doors", keeps_no_state=True)

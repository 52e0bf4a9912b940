"""The quickstart's pages: small, self-contained, drawn from a seed, scored by themselves."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from urllib.parse import parse_qsl, urlencode

from browser_workers.browser import Browser, Opening
from browser_workers.site import Documents
from browser_workers.suites import UnknownWebsite, probe_at, suite

ORIGIN = "http://demo.millrace.test"
"""Never looked up: the worker answers for it."""
NAME = "demo"
_ASKED_AT_ONCE = 100
"""Pages whose instructions are one text: what a page says is bounded."""


@suite(NAME)
class DemoSuite:
    """`demo:<page>?seed=<n>`."""

    def __init__(self) -> None:
        folder = resources.files("browser_workers.suites") / "pages"
        documents = {f"/{file.name.removesuffix('.html')}": file.read_bytes() for file in folder.iterdir()}
        self._site = Documents(origin=ORIGIN, documents=documents)

    @property
    def pages(self) -> tuple[str, ...]:
        return tuple(sorted(path[1:] for path in self._site.documents))

    def resolve(self, page: str, query: str) -> Opening:
        if page not in self.pages:
            raise UnknownWebsite(f"the demo suite has no page {page!r}: write one of {', '.join(self.pages)}")
        url = f"{ORIGIN}/{page}" + (f"?{urlencode(parse_qsl(query, keep_blank_values=True))}" if query else "")
        return Opening(
            url=url,
            probe=probe_at(url, "window.millrace"),
            site=self._site,
            keeps_no_state=True,
            quiet_s=0.0,
            feedback=False,
        )


async def demo_tasks(
    browser: Browser, page: str, seeds: Sequence[int], *, parameters: str = "", first_id: int = 0
) -> list[Mapping[str, object]]:
    """Lines of a task file, one a seed; each instruction is what the page itself would ask for.

    Args:
        parameters: of every page beside its seed, as in `by=label`.

    Raises:
        UnknownWebsite: there is no such page.
    """
    fixed = f"{parameters}&" if parameters else ""
    parts = [seeds[first : first + _ASKED_AT_ONCE] for first in range(0, len(seeds), _ASKED_AT_ONCE)]
    async with browser.session(DemoSuite().resolve(page, f"{fixed}seed=0")) as session:
        await session.open()
        told = await session.page_values([f"JSON.stringify(millraceUtterances({list(part)}))" for part in parts])
    instructions: list[str] = [instruction for part in told for instruction in json.loads(part)]
    return [
        {
            "task_id": first_id + index,
            "task_name": instruction,
            "domain": NAME,
            "subdomain": page,
            "website": f"{NAME}:{page}?{fixed}seed={seed}",
            "difficulty": 1,
            "evaluator_reference": instruction,
            "definite_answer": None,
        }
        for index, (seed, instruction) in enumerate(zip(seeds, instructions, strict=True))
    ]

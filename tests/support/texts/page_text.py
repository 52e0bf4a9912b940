"""What a person reads in the screenshots of a played run: the text that was in view when each screenshot was taken.

Invariant: one screenshot has one text; it is found again by the digest of the screenshot's bytes alone.
"""

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from browser_workers.browser import Browser, Opening, Performed, Session, View
from schemas.messages import Action

# Text and the contents of fields, in the order of the page, as far as a part of them is inside the window; blocks are parted
# by a space. What a modal dialog covers is left out.
_IN_VIEW = """(() => {
  const modal = document.querySelector("dialog:modal");
  const inside = (boxes) => [...boxes].some((box) => box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0
    && box.top < innerHeight && box.left < innerWidth);
  const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const block = (element) => {
    while (["inline", "contents"].includes(getComputedStyle(element).display)) element = element.parentElement;
    return element;
  };
  const walk = document.createTreeWalker(modal ?? document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  const found = [];
  let last = null;
  for (let node = walk.currentNode; node; node = walk.nextNode()) {
    if (node instanceof Text) {
      const range = document.createRange();
      range.selectNodeContents(node);
      if (!node.parentElement.closest("select, script, style") && shown(node.parentElement)
          && inside(range.getClientRects())) {
        const now = block(node.parentElement);
        found.push(now === last ? "" : " ", node.data);
        last = now;
      }
    } else if (node.matches("input, select, textarea") && shown(node) && inside(node.getClientRects())) {
      last = null;
      if (node.type === "checkbox" || node.type === "radio") found.push(node.checked ? " \\u2611 " : " \\u2610 ");
      else if (node instanceof HTMLSelectElement) found.push(" ", node.selectedOptions[0]?.label ?? "");
      else found.push(" ", node.type === "password" ? "" : node.value || node.placeholder);
    }
  }
  return found.join("").replace(/\\s+/g, " ").trim();
})()"""


def digest_of(screenshot: bytes) -> str:
    return hashlib.sha256(screenshot).hexdigest()


@dataclass
class ScreenshotTexts:
    """Texts by the digest of their screenshots."""

    texts: dict[str, str] = field(default_factory=dict)

    def note(self, screenshot: bytes, text: str) -> None:
        known = self.texts.setdefault(digest_of(screenshot), text)
        assert known == text, f"one screenshot with two texts: {known!r} and {text!r}"

    @property
    def by_digest(self) -> Mapping[str, str]:
        return self.texts


class ReadSession:
    """The real session; what each screenshot shows is noted."""

    def __init__(self, inner: Session, texts: ScreenshotTexts) -> None:
        self._inner, self._texts = inner, texts
        self.open, self.state, self.page_values = inner.open, inner.state, inner.page_values
        self.wait_failed, self.blockage, self.pass_over_blockage = inner.wait_failed, inner.blockage, inner.pass_over_blockage
        self.egress, self.has_other_egress = inner.egress, inner.has_other_egress

    async def perform(self, action: Action) -> Performed:
        return await self._inner.perform(action)

    async def view(self) -> View:
        view = await self._inner.view()
        (text,) = await self._inner.page_values([_IN_VIEW])
        self._texts.note(view.screenshot.data, text)
        return view


@dataclass
class ReadBrowser:
    inner: Browser
    texts: ScreenshotTexts

    @asynccontextmanager
    async def session(self, opening: Opening) -> AsyncIterator[ReadSession]:
        async with self.inner.session(opening) as session:
            yield ReadSession(session, self.texts)

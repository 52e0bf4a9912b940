"""The help centre: articles in text files beside this module, and the pages made of them.

An article is a title and paragraphs, parted by blank lines. A paragraph is a `## heading`, lines of `- item`, lines of
`a | b` as a table, or text; `[words](/address)` is a link anywhere.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from browser_workers.suites.shop.catalogue import Catalogue
from browser_workers.suites.shop.layout import breadcrumbs, page
from browser_workers.suites.shop.markup import Child, Markup, element

_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


@dataclass(frozen=True, slots=True)
class Article:
    slug: str
    title: str
    paragraphs: tuple[str, ...]


@cache
def articles() -> Mapping[str, Article]:
    """By slug, in the order of their titles."""
    folder = resources.files("browser_workers.suites.shop") / "articles"
    read = [_article(file.name.removesuffix(".txt"), file.read_text(encoding="utf-8")) for file in folder.iterdir()]
    return {article.slug: article for article in sorted(read, key=lambda article: article.title)}


def _article(slug: str, text: str) -> Article:
    title, *paragraphs = re.split(r"\n\s*\n", text.strip())
    return Article(slug, title, tuple(paragraphs))


def help_page(catalogue: Catalogue, words: str) -> Markup:
    """All articles, or those that hold every one of the words."""
    shown = [each for each in articles().values() if _holds(each, words)]
    field = element("input", type="search", name="q", value=words, aria_label="Search the help centre")
    search = element(
        "form", field, element("button", "Search help", type="submit"), action="/help", class_="joined help-search"
    )
    cards = [
        element("li", element("a", element("strong", each.title), element("span", summary(each)), href=f"/help/{each.slug}"))
        for each in shown
    ]
    none = element("p", "No article says that. Try another word.", class_="empty") if not cards else None
    return page(
        catalogue,
        "Help centre",
        breadcrumbs(here="Help centre"),
        element("h1", "Help centre"),
        search,
        none,
        element("ul", cards, class_="topics"),
    )


def article_page(catalogue: Catalogue, article: Article) -> Markup:
    others = [element("li", element("a", each.title, href=f"/help/{each.slug}")) for each in articles().values()]
    aside = element("aside", element("h2", "More help"), element("ul", others))
    text = element("article", element("h1", article.title), [_paragraph(each) for each in article.paragraphs])
    return page(
        catalogue,
        article.title,
        breadcrumbs(("Help centre", "/help"), here=article.title),
        element("div", text, aside, class_="wiki"),
    )


def _holds(article: Article, words: str) -> bool:
    text = f"{article.title} {' '.join(article.paragraphs)}".lower()
    return all(word in text for word in words.lower().split())


def summary(article: Article) -> str:
    """Its first sentence."""
    return _LINK.sub(r"\1", article.paragraphs[0]).split(". ")[0].rstrip(".") + "."


def _paragraph(text: str) -> Markup:
    lines = text.splitlines()
    if text.startswith("## "):
        return element("h2", text.removeprefix("## "))
    if all(line.startswith("- ") for line in lines):
        return element("ul", [element("li", list(_inline(line[2:]))) for line in lines])
    if all(" | " in line for line in lines):
        head, *rows = [line.split(" | ") for line in lines]
        return element(
            "table",
            element("tr", [element("th", cell, scope="col") for cell in head]),
            [element("tr", [element("td", list(_inline(cell))) for cell in row]) for row in rows],
        )
    return element("p", list(_inline(" ".join(lines))))


def _inline(text: str) -> Iterator[Child]:
    end = 0
    for link in _LINK.finditer(text):
        yield text[end : link.start()]
        yield element("a", link.group(1), href=link.group(2))
        end = link.end()
    yield text[end:]

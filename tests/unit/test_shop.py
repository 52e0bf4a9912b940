"""The demo shop by value: its catalogue, listings, pages, links and tasks."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from browser_workers.site import SiteRequest
from browser_workers.suites import UnknownWebsite, resolve
from browser_workers.suites.shop.catalogue import catalogue
from browser_workers.suites.shop.customers import customers
from browser_workers.suites.shop.listing import PAGE_SIZE, Filters, found, listing, read_filters
from browser_workers.suites.shop.markup import Markup, element
from browser_workers.suites.shop.site import ORIGIN, ShopSite
from browser_workers.suites.shop.steps import Choose, Fill, Go, Press, Say, Solution, locate, to_action
from browser_workers.suites.shop.suite import ShopSuite
from browser_workers.suites.shop.tasks.draw import shop_tasks
from browser_workers.suites.shop.tasks.lines import task_lines
from browser_workers.suites.shop.tasks.task import Difficulty
from ops import cli
from schemas.messages import Action, ActionKind, CheckKind, Fact
from trainer.feeding.task_files import read_tasks
from trainer.feeding.task_values import normal_facts

SHOP = catalogue()
SITE = ShopSite()
_QUOTED = re.compile("“[^”]+”")
_LINK = re.compile(r'(?:href|src|action)="(/[^"]*)"')


def get(address: str) -> tuple[int, str]:
    path, _, query = address.partition("?")
    response = SITE.respond(SiteRequest(path, query))
    return response.status, response.body.decode()


def test_a_seed_gives_one_shop_and_another_seed_another() -> None:
    catalogue.cache_clear()
    assert catalogue() == SHOP
    assert catalogue(8).products != SHOP.products
    assert len({product.slug for product in SHOP.products}) == len(SHOP.products) == 90


def test_markup_escapes_texts_and_attributes() -> None:
    made = element("a", "<b> & ", element("i", "x"), None, href='/"q"', hidden=True, title=None, class_="c", data_x=1)
    assert made == '<a href="/&quot;q&quot;" hidden class="c" data-x="1">&lt;b&gt; &amp; <i>x</i></a>'
    assert element("br") == "<br>"
    assert isinstance(made, Markup)


def test_what_visitors_write_into_addresses_stays_text() -> None:
    for address in ("/search?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/help?q=%3Cscript%3Ealert(1)"):
        assert "<script>alert" not in get(address)[1]
    assert "</script><script>" not in get("/cart?add=%3C/script%3E%3Cscript%3E:a:b:1")[1]


@pytest.mark.parametrize(
    ("query", "filters"),
    [
        ("", Filters()),
        ("q=+oak&page=2&stock=1", Filters(words="oak", page=2, in_stock=True)),
        ("max=40&rating=4.5&sort=price-low", Filters(max_price=40, min_rating=4.5, order="price-low")),
        ("max=-1&rating=nan&sort=best&page=x", Filters()),
        ("max=1e999&page=0", Filters()),
    ],
)
def test_filters_are_read_from_an_address(query: str, filters: Filters) -> None:
    assert read_filters(query) == filters
    assert read_filters(filters.query()) == filters


def test_listings_filter_sort_and_page() -> None:
    cheap = found(SHOP.products, Filters(category="kitchen", max_price=30, in_stock=True, order="price-high"))
    assert cheap
    assert all(each.category == "kitchen" and each.price_cents <= 3000 and each.in_stock for each in cheap)
    prices = [each.price_cents for each in cheap]
    assert prices == sorted(prices, reverse=True)
    every = [product for page in range(1, 11) for product in listing(SHOP.products, Filters(page=page)).products]
    assert every == list(SHOP.products)
    last = listing(SHOP.products, Filters(page=999))
    assert (last.page, last.num_pages, last.num_found) == (90 // PAGE_SIZE, 90 // PAGE_SIZE, 90)
    assert listing(SHOP.products, Filters(words="no such thing")).num_found == 0


def test_every_link_leads_to_a_page() -> None:
    todo, seen, broken = ["/", "/cart", "/checkout/address", "/account"], set[str](), list[str]()
    while todo:
        address = todo.pop()
        if address in seen or address == "/printed-catalogue":
            continue
        seen.add(address)
        status, text = get(address)
        if status != 200 and address != "/outlet":
            broken.append(address)
        links = [unescape(link).partition("#")[0] for link in _LINK.findall(text)]
        todo.extend(link for link in links if link and not link.startswith("/static"))
        assert all(get(link)[0] == 200 for link in links if link.startswith("/static"))
    assert broken == []
    assert len(seen) > 120


def test_pages_that_misbehave() -> None:
    assert get("/nowhere")[0] == get("/product/nothing")[0] == get("/static/nothing.js")[0] == get("/cart/x")[0] == 404
    assert get("/outlet")[0] == 500
    assert get("/outlet?again=1")[0] == 200
    assert SITE.respond(SiteRequest("/stores")).after_s == 2.5
    assert SITE.respond(SiteRequest("/printed-catalogue")).breaks_off


def test_every_field_has_a_name() -> None:
    for address in ("/", "/category/clothing", "/product/plover-jumper", "/help"):
        text = get(address)[1]
        fields = re.findall(r"<(?:input|select)[^>]*>", text)
        labelled = re.findall(r"<label[^>]*>.*?</label>", text)
        assert fields
        for field in fields:
            inside = "aria-label" in field or 'type="hidden"' in field or any(field in label for label in labelled)
            identity = re.search(r'id="([^"]+)"', field)
            assert inside or (identity and f'for="{identity[1]}"' in text), field


def test_websites_of_the_suite() -> None:
    suites = {"shop": ShopSuite()}
    assert resolve("shop:home", suites).url == f"{ORIGIN}/"
    assert resolve("shop:search?q=mug", suites).url == f"{ORIGIN}/search?q=mug"
    assert not resolve("shop:home", suites).keeps_no_state
    with pytest.raises(UnknownWebsite, match="has no page 'attic': write one such as home"):
        resolve("shop:attic", suites)
    assert resolve("shop:home", suites).solution is None
    for unknown in ("", "0", "0.x", "0.999", "-1.0"):
        with pytest.raises(UnknownWebsite, match=r"write a seed and the number of one of its tasks, as in 0\.12"):
            resolve(f"shop:home?solution={unknown}", suites)


def test_a_blocked_visitor_gets_nothing_but_the_check() -> None:
    suites = {"shop": ShopSuite()}
    opening = resolve("shop:search?q=mug&blocked=1", suites)
    assert opening.url == f"{ORIGIN}/search?q=mug"
    assert opening.site is not None
    for path in ("/", "/search", "/login", "/static/shop.js", "/attic"):
        response = opening.site.respond(SiteRequest(path))
        assert response.status == 403
        assert "Verify that you are human" in response.body.decode()
    site = resolve("shop:search?q=mug", suites).site
    assert site is not None
    assert site.respond(SiteRequest("/")).status == 200
    with pytest.raises(UnknownWebsite, match="blocked=0: write blocked=1, or leave it out"):
        resolve("shop:search?blocked=0", suites)
    both = resolve("shop:home?blocked=1&solution=0.0", suites)
    assert both.url == f"{ORIGIN}/"
    assert both.solution is not None


# tasks ----------------------------------------------------------------------------------------------------------------


def test_tasks_of_a_seed() -> None:
    tasks = shop_tasks(3)
    assert tasks == shop_tasks(3)
    assert tasks != shop_tasks(4)
    assert len({task.instruction for task in tasks}) == len(tasks) >= 40
    by_difficulty = {each: task_lines(3, each) for each in Difficulty}
    assert sum(map(len, by_difficulty.values())) == len(tasks)
    assert all(len(some) >= 10 for some in by_difficulty.values())
    for task in tasks:
        ShopSuite().resolve(*task.start.partition("?")[::2])
        assert task.checks
        assert (task.answer is not None) == any(check.kind is CheckKind.ANSWER for check in task.checks)


@pytest.mark.parametrize("seed", range(1, 30))
def test_every_seed_gives_tasks(seed: int) -> None:
    tasks = shop_tasks(seed)
    assert len(tasks) >= 40
    for task, line in zip(tasks, task_lines(seed), strict=True):
        facts = normal_facts(line["evaluator_reference"])
        assert facts
        assert {fact.difficulty for fact in facts} == {task.difficulty}
        for fact in facts:
            # What has to be seen stands within quotation marks, in every one of its alternatives.
            assert all(_QUOTED.search(each) for each in re.split(" or (?=[^”]*(?:“|$))", fact.description)), fact


def test_facts_of_a_group_keep_its_context() -> None:
    (line,) = (each for each in task_lines() if each["subdomain"] == "heavier" and "Plover Planter" in each["task_name"])
    assert normal_facts(line["evaluator_reference"]) == tuple(
        Fact(f"The product page “{name}” gives “Weight {weight} g”.", 4, "Both weights were looked up on the product pages.")
        for name, weight in (("Dunlin Desk Tray", "530"), ("Plover Planter", "2,820"))
    )


def test_no_customer_has_two_orders_of_one_date() -> None:
    for customer in customers():
        assert len({order.date for order in customer.orders}) == len(customer.orders)


def test_the_task_file_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.jsonl"
    assert cli.main(["tasks", "shop", "--out", str(file), "--seed", "5", "--difficulty", "hard"]) == 0
    assert capsys.readouterr().out == f"16 tasks in {file}\n"
    specs, tasks = read_tasks(file), [task for task in shop_tasks(5) if task.difficulty in Difficulty.HARD.value]
    assert [spec.checks for spec in specs] == [task.checks for task in tasks]
    assert [spec.reference_answer for spec in specs] == [task.answer for task in tasks]
    assert all(spec.website.startswith("shop:") and spec.difficulty >= 7 for spec in specs)
    for spec, task in zip(specs, tasks, strict=True):
        opening = resolve(spec.website, {"shop": ShopSuite()})
        assert opening.url == resolve(f"shop:{task.start}", {"shop": ShopSuite()}).url
        assert isinstance(opening.solution, Solution)
        assert [opening.solution.action(step, "0.5 0.5") for step in range(len(task.solution) + 1)] == [
            *(to_action(step, "0.5 0.5") for step in task.solution),
            None,
        ]
        assert opening.solution.action(0, "") is None


def test_a_task_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tasks", "shop", "--out", str(tmp_path / "absent" / "shop.jsonl")]) == 78
    assert "cannot be written" in capsys.readouterr().err


# steps ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "action"),
    [
        (Go("/help"), Action(kind=ActionKind.NAVIGATE, text=f"{ORIGIN}/help")),
        (Press("Help"), Action(kind=ActionKind.CLICK, point=(250.0, 500.0))),
        (Fill("City", "Faro"), Action(kind=ActionKind.TYPE, point=(250.0, 500.0), text="Faro", enter=False)),
        (Choose("Size", "M"), Action(kind=ActionKind.SELECT, point=(250.0, 500.0), text="M")),
        (Say("42"), Action(kind=ActionKind.ANSWER, text="42")),
    ],
)
def test_steps_become_actions(step: Go | Press | Fill | Choose | Say, action: Action) -> None:
    assert to_action(step, "0.25 0.5") == action


def test_a_step_without_its_element_is_named() -> None:
    with pytest.raises(ValueError, match=r"nothing for Press\(name='Gone'\)"):
        to_action(Press("Gone"), "")
    assert json.dumps('It\'s "so"') in locate(Press('It\'s "so"'))

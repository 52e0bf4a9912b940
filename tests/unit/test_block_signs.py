"""Which pages are taken for blocks: those of well-known guards, and none that lets its visitor in."""

from dataclasses import replace

import pytest

from browser_workers.blockages.facts import Embedded, PageFacts
from browser_workers.blockages.recognition import blockage_of, is_same_house, recognised, retry_after_s, sentence
from browser_workers.blockages.signs import PROVIDERS, SIGNS, Sign

URL = "https://www.shop.example/lamps"
ARTICLE = PageFacts(url=URL, title="Lamps", status=200, text="Lamps of all kinds", num_characters=8000, num_fields=1)
BARE = PageFacts(url=URL, title="shop.example", status=200, text="One moment", num_characters=40)
RECAPTCHA = "https://www.google.com/recaptcha/api2/"
HCAPTCHA = "https://newassets.hcaptcha.com/captcha/v1/abc/static/hcaptcha.html#"

BLOCKS = {
    "cloudflare's header": ("cloudflare", replace(BARE, status=403, headers={"cf-mitigated": "challenge"})),
    "cloudflare's script": (
        "cloudflare",
        replace(BARE, scripts=("https://www.shop.example/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1?ray=1",)),
    ),
    "cloudflare's title": ("cloudflare", replace(BARE, status=503, title="Just a moment...")),
    "cloudflare refuses": ("cloudflare", replace(BARE, status=403, title="Attention Required! | Cloudflare")),
    "cloudflare's number": ("cloudflare", replace(BARE, status=403, text="error code: 1020", num_characters=16)),
    "perimeterx's box": ("perimeterx", replace(BARE, status=403, elements=frozenset({"#px-captcha"}))),
    "perimeterx's title": ("perimeterx", replace(BARE, status=403, title="Access to this page has been denied.")),
    "datadome's frame": (
        "datadome",
        replace(BARE, status=403, frames=(Embedded("https://geo.captcha-delivery.com/captcha/?cid=1", 1.0),)),
    ),
    "datadome's header": ("datadome", replace(BARE, status=403, headers={"x-datadome": "protected"})),
    "akamai refuses": (
        "akamai",
        replace(BARE, status=403, title="Access Denied", text="You don't have permission.\nReference #18.2d351ab8.1557333295"),
    ),
    "imperva refuses": ("imperva", replace(BARE, text="Request unsuccessful. Incapsula incident ID: 89300012-9")),
    "aws's captcha": ("aws_waf", replace(BARE, status=405, headers={"x-amzn-waf-action": "captcha"})),
    "google's captcha": ("google", replace(BARE, url="https://www.google.com/sorry/index?continue=x", status=429)),
    "recaptcha's riddle over a form": ("recaptcha", replace(ARTICLE, frames=(Embedded(RECAPTCHA + "bframe?hl=en", 0.24),))),
    "recaptcha's box alone": ("recaptcha", replace(BARE, frames=(Embedded(RECAPTCHA + "anchor?ar=1&size=normal", 0.02),))),
    "hcaptcha's riddle": ("hcaptcha", replace(ARTICLE, frames=(Embedded(HCAPTCHA + "frame=challenge&id=0", 0.2),))),
    "turnstile alone": (
        "turnstile",
        replace(BARE, frames=(Embedded("https://challenges.cloudflare.com/cdn-cgi/x/h/g/turnstile/if/ov2/av0", 0.02),)),
    ),
    "too many requests": ("site", replace(ARTICLE, status=429)),
    "come back later": ("site", replace(ARTICLE, status=503, headers={"retry-after": "120"})),
    "the site's own words": (
        "site",
        replace(BARE, status=403, text="We detected unusual traffic from your network.", num_characters=46),
    ),
}

PAGES = {
    "an article": ARTICLE,
    "a bare page": BARE,
    "nothing at all": PageFacts(),
    "cloudflare's script of ordinary pages": replace(
        ARTICLE, scripts=("https://www.shop.example/cdn-cgi/challenge-platform/scripts/jsd/main.js",)
    ),
    "datadome's script of ordinary pages": replace(
        ARTICLE, scripts=("https://js.datadome.co/tags.js",), headers={"x-datadome": "protected"}
    ),
    "imperva's script of ordinary pages": replace(
        ARTICLE, scripts=("https://www.shop.example/_Incapsula_Resource?SWJIYLWA=1",)
    ),
    "a form with an invisible badge": replace(
        BARE, num_fields=2, frames=(Embedded(RECAPTCHA + "anchor?size=invisible&badge=bottomright", 0.01),)
    ),
    "a bare page with an invisible badge": replace(BARE, frames=(Embedded(RECAPTCHA + "anchor?ar=1&size=invisible", 0.01),)),
    "a form with a box": replace(BARE, num_fields=2, frames=(Embedded(RECAPTCHA + "anchor?size=normal", 0.02),)),
    "an article with a box": replace(ARTICLE, frames=(Embedded(HCAPTCHA + "frame=checkbox&size=normal", 0.02),)),
    "a login form with turnstile": replace(
        BARE, num_fields=2, frames=(Embedded("https://challenges.cloudflare.com/x/turnstile/if/ov2", 0.02),)
    ),
    "a page that is for others": replace(BARE, status=403, title="Forbidden", text="403 Forbidden", num_characters=13),
    "a page that is not there": replace(BARE, status=404, title="Not Found"),
    "a site that is down": replace(BARE, status=503, title="Service Unavailable"),
    "an article about captchas": replace(ARTICLE, title="Are you a robot? Captchas explained", text="verify you are human"),
    "an article with akamai's words": replace(ARTICLE, status=200, title="Access Denied", text="Reference #18.2d351ab8.15573"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_recognised(name: str) -> None:
    provider, facts = BLOCKS[name]
    sign = recognised(facts)
    assert sign is not None
    assert sign.provider == provider


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_lets_its_visitor_in_is_none(name: str) -> None:
    assert recognised(PAGES[name]) is None


def test_every_sign_names_something_that_a_page_must_have() -> None:
    for sign in SIGNS:
        assert any((sign.statuses, sign.header, sign.url, sign.title, sign.text, sign.script, sign.frame, sign.element)), sign
        assert not sign.holds(PageFacts())
        assert not sign.holds(ARTICLE)


def test_a_row_holds_when_all_that_it_names_holds() -> None:
    sign = Sign(provider="x", says="y", statuses=(403,), title="^No$", header="via: x")
    facts = PageFacts(status=403, title="No", headers={"via": "x"})
    assert sign.holds(facts)
    assert not any(
        sign.holds(other) for other in (replace(facts, status=200), replace(facts, title="None"), replace(facts, headers={}))
    )


def test_providers_are_few_and_can_be_labels() -> None:
    assert len(PROVIDERS) < 30
    assert all(provider.replace("_", "").isalnum() for provider in PROVIDERS)


def test_what_is_said_of_a_block() -> None:
    facts = replace(ARTICLE, status=429, headers={"retry-after": "90"})
    sign = recognised(facts)
    assert sign is not None
    found = blockage_of(facts, sign, begun_on="shop.example", egress="http://p.example:3128", now_s=0.0)
    assert (found.site, found.elsewhere, found.retry_after_s) == ("shop.example", False, 90.0)
    assert sentence(found) == "shop.example let nobody in: it had too many requests (HTTP 429), to be asked again after 90 s"
    assert blockage_of(facts, sign, begun_on="other.example", egress="", now_s=0.0).elsewhere


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 60.0),
        ("Thu, 01 Jan 1970 00:00:30 GMT", 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("-5", 0.0),
        ("9" * 400, 30 * 86_400.0),
        ("²", 0.0),
        ("Thu, 01 Jan 1970 00:02:00 +9999999999999999", 0.0),
        ("Thu, 01 Jan 99999999999 00:02:00 GMT", 0.0),
    ],
)
def test_when_a_site_may_be_asked_again(header: str, seconds: float) -> None:
    assert retry_after_s(header, now_s=60.0) == seconds


def test_a_house_is_a_domain_with_its_subdomains() -> None:
    assert is_same_house("shop.example", "shop.example")
    assert is_same_house("accounts.shop.example", "shop.example")
    assert is_same_house("shop.example", "accounts.shop.example")
    assert not is_same_house("myshop.example", "shop.example")

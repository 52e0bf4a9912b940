"""The signs by which pages of well-known guards are recognised: a table, to be read and extended.

A row holds when everything that it names holds; the first row that holds counts. It has to be so narrow that no page which
lets a visitor in has it: guards leave scripts, badges and cookies on ordinary pages too.
"""

import re
from dataclasses import dataclass

from browser_workers.blockages.facts import PageFacts

SITE = "site"
"""The provider where a site refuses by itself."""
_REFUSED = (401, 403, 405, 406, 429, 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    provider: str
    says: str
    """For people, as in "its check of visitors is shown"."""
    passes: bool = False
    """The page may let a browser in by itself after a moment."""
    statuses: tuple[int, ...] = ()
    """One of them."""
    header: str = ""
    """`name: pattern`, the name in lower case."""
    url: str = ""
    title: str = ""
    text: str = ""
    script: str = ""
    """Of one script's address."""
    frame: str = ""
    """Of the address of one frame that is seen."""
    least_share: float = 0.0
    """Of the viewport that this frame covers."""
    element: str = ""
    """Selector of an element that is seen."""
    bare: bool = False
    """There is little else on the page."""

    def holds(self, facts: PageFacts) -> bool:
        return (
            (not self.statuses or facts.status in self.statuses)
            and (not self.bare or facts.is_bare)
            and (not self.element or self.element in facts.elements)
            and (not self.header or self._header_holds(facts))
            and _found(self.url, facts.url)
            and _found(self.title, facts.title)
            and _found(self.text, facts.text)
            and (not self.script or any(_found(self.script, script) for script in facts.scripts))
            and (not self.frame or self._frame_holds(facts))
        )

    def _header_holds(self, facts: PageFacts) -> bool:
        name, _, pattern = self.header.partition(": ")
        return name in facts.headers and _found(pattern, facts.headers[name])

    def _frame_holds(self, facts: PageFacts) -> bool:
        return any(each.share >= self.least_share and _found(self.frame, each.url) for each in facts.frames)


def _found(pattern: str, text: str) -> bool:
    return not pattern or re.search(pattern, text, re.IGNORECASE) is not None


_CHECK, _REFUSAL, _CAPTCHA = "its check of visitors is shown", "it refuses this visitor", "its captcha is shown"

SIGNS = (
    # Cloudflare. Its script `challenge-platform/.../jsd` stands on ordinary pages too.
    Sign(provider="cloudflare", says=_CHECK, passes=True, header="cf-mitigated: ^challenge$"),
    Sign(provider="cloudflare", says=_CHECK, passes=True, script="/cdn-cgi/challenge-platform/h/[a-z]/orchestrate/"),
    Sign(provider="cloudflare", says=_CHECK, passes=True, statuses=_REFUSED, title=r"^Just a moment\.\.\.$"),
    Sign(provider="cloudflare", says=_REFUSAL, title=r"^Attention Required! \| Cloudflare$"),
    Sign(provider="cloudflare", says=_REFUSAL, title="used Cloudflare to restrict access$"),
    Sign(provider="cloudflare", says=_REFUSAL, statuses=_REFUSED, text=r"error code: 10(06|07|08|09|10|12|15|20)\b"),
    # HUMAN, formerly PerimeterX.
    Sign(provider="perimeterx", says=_CAPTCHA, element="#px-captcha"),
    Sign(provider="perimeterx", says=_CAPTCHA, script=r"//captcha\.px-(cdn|cloud)\.net/"),
    Sign(provider="perimeterx", says=_REFUSAL, title="^Access to this page has been denied"),
    # DataDome. Its script `js.datadome.co/tags.js` stands on ordinary pages too.
    Sign(provider="datadome", says=_CAPTCHA, frame=r"//([a-z0-9-]+\.)*captcha-delivery\.com/", least_share=0.1),
    Sign(provider="datadome", says=_CHECK, passes=True, script=r"//ct\.captcha-delivery\.com/[ci]\.js"),
    Sign(provider="datadome", says=_REFUSAL, statuses=(403, 405), header="x-datadome: ."),
    # Akamai. Its script for sensor data stands on ordinary pages too.
    Sign(provider="akamai", says=_CHECK, element="#sec-if-cpt-container, #sec-cpt-if"),
    Sign(provider="akamai", says=_REFUSAL, statuses=(403,), title="^Access Denied$", text=r"Reference\s*#\d+\.[0-9a-f]+\.\d+"),
    # Imperva, formerly Incapsula and Distil. Its script `_Incapsula_Resource` stands on ordinary pages too.
    Sign(provider="imperva", says=_REFUSAL, text=r"Incapsula incident ID: \d+"),
    Sign(provider="imperva", says=_CAPTCHA, frame=r"/_Incapsula_Resource\?.*incident_id=", least_share=0.1),
    Sign(provider="imperva", says=_CHECK, title="^Pardon Our Interruption"),
    # Amazon's firewall, and its own shop.
    Sign(provider="aws_waf", says=_CHECK, passes=True, statuses=(202,), header="x-amzn-waf-action: ^challenge$"),
    Sign(provider="aws_waf", says=_CAPTCHA, statuses=(405,), header="x-amzn-waf-action: ^captcha$"),
    Sign(provider="amazon", says=_CAPTCHA, text="Enter the characters you see below", title="^(Amazon|Robot Check)"),
    # Others.
    Sign(provider="vercel", says=_CHECK, passes=True, header="x-vercel-mitigated: ^challenge$"),
    Sign(provider="vercel", says=_CHECK, passes=True, statuses=_REFUSED, title="^Vercel Security Checkpoint$"),
    Sign(provider="kasada", says=_CHECK, passes=True, statuses=(429,), script="/149e9513-01fa-4fb0-aad4-566afd725d1b/"),
    Sign(provider="sucuri", says=_REFUSAL, title="^Sucuri Website Firewall - Access Denied$"),
    Sign(provider="google", says=_CAPTCHA, url=r"//(www|ipv[46])\.google\.[a-z.]+/sorry/"),
    # Captchas that anybody may show. A badge, or a box in a form that can be filled in, is none: what counts is a riddle
    # that lies over the page, or a box with little else on its page.
    Sign(
        provider="recaptcha",
        says=_CAPTCHA,
        frame=r"//(www\.google\.com|www\.recaptcha\.net|recaptcha\.google\.com)/recaptcha/(api2|enterprise)/bframe",
        least_share=0.1,
    ),
    Sign(
        provider="recaptcha",
        says=_CAPTCHA,
        frame=r"//(www\.google\.com|www\.recaptcha\.net)/recaptcha/(api2|enterprise)/anchor(?!.*size=invisible)",
        bare=True,
    ),
    Sign(provider="hcaptcha", says=_CAPTCHA, frame=r"//([a-z0-9-]+\.)*hcaptcha\.com/.*frame=challenge", least_share=0.1),
    Sign(
        provider="hcaptcha",
        says=_CAPTCHA,
        frame=r"//([a-z0-9-]+\.)*hcaptcha\.com/.*frame=checkbox(?!.*size=invisible)",
        bare=True,
    ),
    Sign(provider="turnstile", says=_CAPTCHA, frame=r"//challenges\.cloudflare\.com/.*/turnstile/", bare=True),
    Sign(provider="arkose", says=_CAPTCHA, frame=r"//([a-z0-9-]+\.)*(arkoselabs|funcaptcha)\.com/", least_share=0.1),
    # What a site says by itself.
    Sign(provider=SITE, says="it had too many requests", statuses=(429,)),
    Sign(provider=SITE, says="it asks to come back later", statuses=(503,), header="retry-after: ."),
    Sign(
        provider=SITE,
        says="it refuses automated visitors",
        statuses=(403, 503),
        text=r"\b(automated (access|requests?|traffic|queries)|unusual (traffic|activity)|are you (a )?(human|robot)|"
        r"verify (that )?you are (a )?human|not a robot|bot (detection|protection|activity)|"
        r"your (ip|access|request)( address)? (has been|was|is) (temporarily )?(blocked|denied|banned))",
        bare=True,
    ),
)
"""In the order in which they are tried."""

ELEMENTS = tuple(dict.fromkeys(sign.element for sign in SIGNS if sign.element))
"""Selectors that a page is asked about."""
PROVIDERS = tuple(dict.fromkeys(sign.provider for sign in SIGNS))

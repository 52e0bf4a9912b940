"""Sampled episodes: which are chosen, what the page shows of them, and that nothing on it can do anything."""

import io
from html.parser import HTMLParser
from pathlib import Path

import msgspec
from PIL import Image

from ops.roles.shown_step import show_step
from schemas.messages import Action, ActionKind, Element, Judgement, Observation
from tests import builders
from trainer.tracking import ShownEpisode, ShownStep
from trainer.tracking.sample_choice import chosen_episodes
from trainer.tracking.sample_page import sample_page, write_page


def judged(name: str, reward: float | None) -> Judgement:
    return builders.judgement(builders.trajectory(builders.task(name), num_steps=1), reward)


def test_half_are_successes_where_there_are_enough() -> None:
    batch = [judged(f"s{i}", 1.0) for i in range(9)] + [judged(f"f{i}", 0.0) for i in range(9)] + [judged("x", None)]
    chosen = chosen_episodes(batch, 6)
    assert [judgement.reward for judgement in chosen] == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert chosen == chosen_episodes(batch[::-1], 6), "whatever the order"
    assert [judgement.reward for judgement in chosen_episodes(batch[8:], 6)] == [1.0, *[0.0] * 5]
    assert [judgement.reward for judgement in chosen_episodes(batch[:10], 6)] == [*[1.0] * 5, 0.0]
    assert chosen_episodes([builders.judgement(builders.trajectory(builders.task()))], 6) == [], "nothing was played"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


_HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{cards}}"


def episode(screenshot: bytes = b"jpeg", *, words: str = _HOSTILE, num_steps: int = 2) -> ShownEpisode:
    return ShownEpisode(
        episode=words,
        instruction=words,
        website=words,
        difficulty=1,
        outcome=words,
        verdict=words,
        reward=0.5,
        reasoning=words,
        versions=(3, 4),
        steps=tuple(ShownStep(action=words, response=words, parsed=False, screenshot=screenshot) for _ in range(num_steps)),
    )


def test_no_word_of_a_page_becomes_markup() -> None:
    hostile, plain = (sample_page("run", 12, [episode(words=words)]) for words in (_HOSTILE, "w"))
    seen, expected = Tags(), Tags()
    seen.feed(hostile)
    expected.feed(plain)
    assert [tag for tag, _ in seen.tags] == [tag for tag, _ in expected.tags]
    assert not any(name.startswith("on") for _, attributes in seen.tags for name in attributes)
    screenshots = [attributes["src"] for tag, attributes in seen.tags if tag == "img"]
    assert len(screenshots) == 2
    assert all(source and source.startswith("data:image/jpeg;base64,") for source in screenshots)
    assert "default-src 'none'" in hostile


def test_the_page_has_a_size_that_it_does_not_pass() -> None:
    page = sample_page("run", 1, [episode(b"x" * 3 * 2**20, words="w" * 100_000, num_steps=9)])
    assert len(page) < 12 * 2**20
    assert page.count("left out: the page is full") == 7
    assert "(100000 characters)" in page


def test_old_pages_are_deleted(tmp_path: Path) -> None:
    for version in (1, 2, 30, 4):
        write_page(tmp_path / "samples", version, "p", keep=2)
    assert sorted(path.name for path in (tmp_path / "samples").iterdir()) == ["v000004.html", "v000030.html"]


def _seen(width: int = 1280, height: int = 720) -> Observation:
    encoded = io.BytesIO()
    Image.new("RGB", (width, height), "#00a000").save(encoded, "PNG")
    seen = builders.observation(builders.task(), data=encoded.getvalue())
    screenshot = msgspec.structs.replace(seen.screenshot, width=width, height=height)
    return msgspec.structs.replace(
        seen, screenshot=screenshot, elements=(Element(id=7, tag="a", text="", box=(600, 340, 80, 40)),)
    )


def _marked(action: Action) -> Image.Image:
    step = msgspec.structs.replace(builders.step_request(builders.task()), action=action)
    return Image.open(io.BytesIO(show_step(3, _seen(), step).screenshot)).convert("RGB")


def test_clicks_on_points_and_on_elements_are_drawn_in() -> None:
    for action in (Action(kind=ActionKind.CLICK, point=(500, 500)), Action(kind=ActionKind.CLICK, element=7)):
        screenshot = _marked(action)
        assert screenshot.size == (640, 360)
        red, green, _ = screenshot.getpixel((320 - 14, 180))  # type: ignore[misc]
        assert red > 180
        assert green < 100
    red, green, _ = _marked(Action(kind=ActionKind.WAIT)).getpixel((320 - 14, 180))  # type: ignore[misc]
    assert green > 130
    assert red < 60
    drag = _marked(Action(kind=ActionKind.DRAG, point=(100, 500), end_point=(900, 500)))
    assert drag.getpixel((400, 180))[0] > 150  # type: ignore[index]


def test_a_screenshot_that_cannot_be_read_is_left_out() -> None:
    shown = show_step(1, builders.observation(builders.task(), data=b"junk"), builders.step_request(builders.task()))
    assert shown.screenshot == b""
    assert shown.action == "click at [500, 500]"

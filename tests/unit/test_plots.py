"""The saved pictures: real PNG files that show what they were given."""

import io
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image

from ops.monitor.view import Curve, CurvePoint, VersionMark
from ops.pictures.film import MOST_FRAMES, draw_film
from ops.pictures.frame import Frame, frame_of
from ops.pictures.strip import draw_strip
from ops.quickstart.plots import plot_curve
from ops.quickstart.results import most_telling
from schemas.ids import PolicyVersion
from schemas.messages import Action, ActionKind, Element, Judgement
from tests.builders import judgement, observation, step_request, task, trajectory

_CURVE = Curve(
    train=tuple(CurvePoint(num_episodes=64 * i, success=min(1.0, 0.35 + i / 60)) for i in range(1, 40)),
    held_out=(CurvePoint(num_episodes=0, success=0.39), CurvePoint(num_episodes=2496, success=0.93)),
    versions=tuple(VersionMark(num_episodes=256 * i, version=i) for i in range(1, 10)),
    bar=0.8,
)


def _page(width: int = 160, height: int = 210, colour: str = "#00a000", form: str = "PNG") -> bytes:
    encoded = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(encoded, form)
    return encoded.getvalue()


def _pixels(data: bytes) -> set[tuple[int, ...]]:
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.format == "PNG"
        return {colour for _, colour in picture.convert("RGB").getcolors(2**24) or []}  # type: ignore[misc]


@pytest.mark.parametrize("curve", [_CURVE, Curve()])
def test_the_curve_is_a_picture(curve: Curve, tmp_path: Path) -> None:
    path = tmp_path / "curve.png"
    plot_curve(curve, path, title="Millrace quickstart")
    colours = _pixels(path.read_bytes())
    assert ((0x2E, 0x8B, 0x3D) in colours) == bool(curve.held_out)
    assert ((0x1B, 0x7F, 0x9E) in colours) == bool(curve.train)


def test_clicks_are_drawn_where_they_were_made() -> None:
    clicked = Frame(screenshot=_page(), caption="click", point=(250.0, 500.0))
    strip = draw_strip([clicked, Frame(screenshot=_page(form="JPEG"), caption="page changed")], title="click the button")
    with Image.open(io.BytesIO(strip)) as picture:
        # The ring's left edge: 15 pixels left of a quarter of the frame's 320 pixels, 16 and 40 from the sheet's corner.
        assert picture.getpixel((16 + 80 - 14, 40 + 210)) == (0xE0, 0x24, 0x5E)
        assert picture.getpixel((16 + 80, 40 + 210)) == (0x00, 0xA0, 0x00)
        assert picture.size == (16 + 2 * (320 + 16), 40 + 420 + 44 + 8)
    plain = draw_strip([Frame(screenshot=_page())], title="t")
    assert (0xE0, 0x24, 0x5E) not in _pixels(plain)


def test_a_film_has_a_picture_for_every_step_in_one_size() -> None:
    clicked = Frame(screenshot=_page(160, 240), caption="click", point=(500.0, 500.0))
    film = draw_film([clicked, Frame(screenshot=_page(640, 240, "#0000a0"), caption="the end")])
    with Image.open(io.BytesIO(film)) as picture:
        assert (picture.format, picture.n_frames, picture.size) == ("WEBP", 2, (1280, 480 + 32))  # type: ignore[attr-defined]
        first = picture.convert("RGB")
        picture.seek(1)
        second = picture.convert("RGB")
        assert picture.info["duration"] > 1200, "the last is shown longest"
    red, green, blue = first.getpixel((160 + 14, 240))  # type: ignore[misc]
    assert red > green + blue, "the ring around the click"
    assert min(first.getpixel((900, 240))) > 250, "paper"  # type: ignore[arg-type]
    assert 140 < second.getpixel((900, 240))[2] < 180  # type: ignore[index]


def test_a_screenshot_that_is_hardly_high_makes_no_endless_picture() -> None:
    for made in (draw_film([Frame(screenshot=_page(60_000, 1))]), draw_strip([Frame(screenshot=_page(60_000, 1))], title="t")):
        with Image.open(io.BytesIO(made)) as picture:
            assert picture.width < 1400


def test_a_film_ends_somewhere() -> None:
    film = draw_film([Frame(screenshot=_page(8, 8, f"#{step:02x}00ff")) for step in range(0, 250, 2)])
    with Image.open(io.BytesIO(film)) as picture:
        assert picture.info["loop"] == 0
        assert picture.n_frames == MOST_FRAMES  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="at least one"):
        draw_film([])
    with pytest.raises(ValueError, match="step 2: the screenshot is no picture"):
        draw_film([Frame(screenshot=_page()), Frame(screenshot=b"no picture")])


def test_a_step_by_number_is_drawn_in_the_middle_of_its_element() -> None:
    okay = Element(id=3, tag="button", text="Okay", box=(40, 84, 80, 42))
    seen = replace(observation(task()), elements=(okay,))
    click = replace(step_request(task()), action=Action(kind=ActionKind.CLICK, element=3))
    assert frame_of(seen, click) == Frame(screenshot=b"jpeg", caption='Click "Okay".', point=(500.0, 500.0))
    assert frame_of(seen, None) == Frame(screenshot=b"jpeg", caption="the end")


def test_the_longest_episode_of_what_the_newest_policy_solves_best_is_shown() -> None:
    def ended(version: int, page: str, steps: int, reward: float) -> Judgement:
        of = replace(task(), policy_version=PolicyVersion(version), subdomain=page)
        return judgement(trajectory(of, num_steps=steps), reward)

    played = [
        ended(2, "login", 3, 1.0),
        ended(2, "login", 2, 1.0),
        ended(2, "menu", 6, 1.0),
        ended(2, "menu", 7, 0.0),
        ended(0, "login", 9, 1.0),
    ]
    told = most_telling(played)
    assert told is not None
    assert (told.task.policy_version, told.task.subdomain, told.num_steps) == (2, "login", 3)
    assert most_telling(played[3:4]) is None


@pytest.mark.parametrize("count", [1, 6, 7, 30])
def test_any_number_of_any_pages_fits(count: int) -> None:
    frames = [Frame(screenshot=_page(1280, 768), caption="words " * 40, point=(1000.0, 1000.0))] * count
    assert _pixels(draw_strip(frames, title="a long title " * 20))


def test_an_empty_strip_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        draw_strip([], title="t")

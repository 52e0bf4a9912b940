"""Answers requests: values as JSON, screenshots that never change, a sentence for every mistake."""

from collections.abc import Awaitable, Callable, Sequence

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ops.console.media_types import SUFFIXES
from schemas.errors import ConfigurationError, MessageCorrupt, MillraceError, RecordGone
from schemas.ids import EpisodeId, subject_token
from schemas.messages import NetworkRecord, Observation, Screenshot, StepRequest

Endpoint = Callable[[Request], Awaitable[Response]]
_FOREVER = {"cache-control": "private, max-age=31536000, immutable"}


def named(episode: str) -> EpisodeId:
    """Raises `ConfigurationError` for what cannot be an episode's name."""
    try:
        return EpisodeId(subject_token(episode, what="an episode"))
    except ConfigurationError as error:
        raise ConfigurationError("This is no episode's name: names are of letters, digits, _ and -.") from error


def json_answer(value: object, headers: dict[str, str] | None = None) -> Response:
    encoded = msgspec.json.encode(value)
    return Response(encoded, media_type="application/json", headers={"cache-control": "no-store", **(headers or {})})


def screenshot_answer(screenshot: Screenshot) -> Response:
    """Under an address that names its content. Raises `RecordGone` for what is no screenshot."""
    if screenshot.media_type not in SUFFIXES:
        raise RecordGone(f"A screenshot of type {screenshot.media_type} cannot be shown.")
    return Response(screenshot.data, media_type=screenshot.media_type, headers=_FOREVER)


def traffic_answer(record: NetworkRecord) -> Response:
    """HAR, as browsers' developer tools open it."""
    headers = {
        "content-disposition": f'attachment; filename="{record.episode}.har"',
        "content-encoding": "gzip",
        "cache-control": "no-store",
    }
    return Response(record.har, media_type="application/json", headers=headers)


async def film_answer(episode: EpisodeId, steps: Sequence[tuple[Observation, StepRequest | None]]) -> Response:
    """What was seen and done, as an animated picture. Raises `RecordGone` where a screenshot is none."""

    def drawn() -> bytes:
        from ops.pictures.film import draw_film
        from ops.pictures.frame import frame_of

        return draw_film([frame_of(seen, step) for seen, step in steps])

    try:
        film = await anyio.to_thread.run_sync(drawn)
    except ValueError as error:
        raise RecordGone(f"No film can be made of this episode: {error}.") from error
    headers = {"content-disposition": f'inline; filename="{episode}.webp"', "cache-control": "no-store"}
    return Response(film, media_type="image/webp", headers=headers)


def explaining(endpoint: Endpoint) -> Endpoint:
    """Answers every error that a person can understand with its sentence."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except (RecordGone, MessageCorrupt) as error:
            status, sentence = 404, str(error)
        except ConfigurationError as error:
            status, sentence = 400, str(error)
        except MillraceError as error:
            status, sentence = 503, str(error)
        response = json_answer({"error": sentence})
        response.status_code = status
        return response

    return answer

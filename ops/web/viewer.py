"""The section of finished episodes: their list, one of them, two of them, and what these pages ask for."""

import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ops.web.answers import explaining, film_answer, json_answer, named, screenshot_answer, traffic_answer
from ops.web.application import Section, Shell
from ops.web.comparison import compare
from ops.web.detail import Chain, Detail, detail_of, screenshot_digest, seen_at, traffic_of
from ops.web.index import EpisodeIndex, Row
from ops.web.prompt import prompt_of
from ops.web.query import read_query
from ops.web.raw import raw_episode, raw_step
from ops.web.store import Fetched, Shown
from ops.web.token_text import TokenTexts
from schemas.errors import RecordGone
from schemas.ids import EpisodeId
from schemas.messages import JudgeCall

LABEL, PATH = "Episodes", "/episodes"
_EVENT_EVERY_S = 1.0
_SIGN_OF_LIFE_S = 15.0
_KEPT_BYTES = 192 * 2**20
"""Of the episodes looked at last, so that their screenshots need not be read again."""
_MOST_SIBLINGS = 200


@dataclass
class Viewer:
    shown: Shown
    index: EpisodeIndex
    texts: TokenTexts
    _kept: OrderedDict[EpisodeId, Fetched] = field(default_factory=OrderedDict)
    _ended: bool = False

    @property
    def section(self) -> Section:
        return Section(label=LABEL, path=PATH, routes=self._routes)

    def _routes(self, shell: Shell) -> tuple[Route, ...]:
        def page(path: str, title: str, module: str) -> Route:
            async def answer(_: Request) -> Response:
                return shell.page(title, module, section=LABEL)

            return Route(path, answer)

        one = "/api/episodes/{episode}"
        return (
            page(PATH, "Episodes", "episodes.js"),
            page("/episodes/{episode}", "Episode", "episode.js"),
            page("/compare", "Compare", "compare.js"),
            Route("/api/episodes", explaining(self._list)),
            Route(one, explaining(self._episode)),
            Route(f"{one}/last-screenshot", explaining(self._last_screenshot)),
            Route(f"{one}/steps/{{step:int}}/prompt", explaining(self._prompt)),
            Route(f"{one}/steps/{{step:int}}/raw", explaining(self._raw_step)),
            Route(f"{one}/download", explaining(self._download)),
            Route(f"{one}/traffic.har", explaining(self._traffic)),
            Route(f"{one}/film.webp", explaining(self._film)),
            Route("/api/compare", explaining(self._compare)),
            Route("/api/screenshots/{digest}/{episode}/{step:int}", explaining(self._screenshot)),
            Route("/api/events", self._events),
        )

    def end(self) -> None:
        """Lets every page that waits for changes go."""
        self._ended = True
        self.index.touch()

    # what pages ask for -----------------------------------------------------------------------------------------------

    async def _list(self, request: Request) -> Response:
        return json_answer(self.index.listing(read_query(request.query_params)))

    async def _episode(self, request: Request) -> Response:
        return json_answer(await self._detail(named(request.path_params["episode"])))

    async def _compare(self, request: Request) -> Response:
        left, right = (named(request.query_params.get(side, "")) for side in ("a", "b"))
        return json_answer(compare(await self._detail(left), await self._detail(right)))

    async def _prompt(self, request: Request) -> Response:
        config = self.shown.config
        chain = await self._chain(request)
        step = request.path_params["step"]
        return json_answer(prompt_of(chain, step, config.context_config, config.model_config, self.texts))

    async def _raw_step(self, request: Request) -> Response:
        return json_answer(raw_step(await self._chain(request), request.path_params["step"]))

    async def _download(self, request: Request) -> Response:
        episode = named(request.path_params["episode"])
        fetched = await self._fetch(episode)
        calls = [call for found in (await self._calls(fetched)).values() for call in found]
        headers = {"content-disposition": f'attachment; filename="{episode}.json"'}
        return json_answer(raw_episode(fetched.episode, calls), headers)

    async def _traffic(self, request: Request) -> Response:
        fetched = await self._fetch(named(request.path_params["episode"]))
        record = traffic_of(fetched.episode)
        if record is None:
            raise RecordGone(
                "Of this episode no traffic is kept: browser workers record it with browser_config.record_network."
            )
        return traffic_answer(record)

    async def _film(self, request: Request) -> Response:
        chain = await self._chain(request)
        seen = [(observation, chain.answers.get(step)) for step, (observation, _) in sorted(chain.observations.items())]
        frames = [(observation, answer[0] if answer else None) for observation, answer in seen if observation.screenshot.data]
        if not frames:
            raise RecordGone("Of this episode no screenshot is kept.")
        return await film_answer(chain.trajectory.task.episode, frames)

    async def _screenshot(self, request: Request) -> Response:
        fetched = await self._fetch(named(request.path_params["episode"]))
        seen = seen_at(fetched.episode, request.path_params["step"])
        if seen is None or screenshot_digest(seen) != request.path_params["digest"]:
            raise RecordGone("There is no such screenshot: it is of another run, or no longer kept.")
        return screenshot_answer(seen.screenshot)

    async def _last_screenshot(self, request: Request) -> Response:
        episode = named(request.path_params["episode"])
        summary = self.index.find(episode)
        seen = await self.shown.store.last_seen(episode, summary.attempt) if summary else None
        if seen is None or not seen.screenshot.data:
            raise RecordGone("Of this episode no screenshot is kept.")
        return screenshot_answer(seen.screenshot)

    async def _events(self, _: Request) -> Response:
        return StreamingResponse(self._revisions(), media_type="text/event-stream")

    async def _revisions(self) -> AsyncIterator[str]:
        revision = -1
        while not self._ended:
            changed = await self._changed(revision)
            if changed is None:
                yield ": still here\n\n"
                continue
            revision = changed
            yield f"event: episodes\ndata: {revision}\n\n"
            await anyio.sleep(_EVENT_EVERY_S)

    async def _changed(self, revision: int) -> int | None:
        with anyio.move_on_after(_SIGN_OF_LIFE_S):
            return await self.index.wait_change(revision)
        return None

    # reading ----------------------------------------------------------------------------------------------------------

    async def _detail(self, episode: EpisodeId) -> Detail:
        # Read anew: judgements come after an episode was looked at first.
        self._kept.pop(episode, None)
        fetched = await self._fetch(episode)
        summary = self.index.find(episode)
        rubric = self.index.rubric_that_counts()
        siblings = self.index.siblings(summary)[:_MOST_SIBLINGS] if summary else []
        return detail_of(
            fetched,
            texts=self.texts,
            calls=await self._calls(fetched),
            keeps_calls=self.shown.store.keeps_calls,
            siblings=[Row(sibling, sibling.ruling(rubric)) for sibling in siblings],
            rubric=rubric,
        )

    async def _calls(self, fetched: Fetched) -> dict[str, Sequence[JudgeCall]]:
        if not self.shown.store.keeps_calls:
            return {}
        rubrics = [judgement.rubric for judgement in fetched.episode.judgements]
        return {rubric: await self.shown.store.calls(rubric, fetched.episode.episode) for rubric in rubrics}

    async def _chain(self, request: Request) -> Chain:
        fetched = await self._fetch(named(request.path_params["episode"]))
        return Chain.of(fetched.episode, [])

    async def _fetch(self, episode: EpisodeId) -> Fetched:
        kept = self._kept.get(episode)
        if kept is not None:
            self._kept.move_to_end(episode)
            return kept
        fetched = await self.shown.store.episode(episode)
        if fetched is None:
            raise RecordGone(_nothing_of(episode, self.index))
        self._kept[episode] = fetched
        while len(self._kept) > 1 and sum(map(_num_bytes, self._kept.values())) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return fetched


def _nothing_of(episode: EpisodeId, index: EpisodeIndex) -> str:
    if index.reading:
        return f"Episode {episode} was not found yet: what is kept is still being read."
    if index.find(episode) is not None:
        return f"Episode {episode} is no longer kept: an archive of the run may hold it."
    return f"There is no finished episode {episode} here. It may still be played, have aged out, or be of another run."


def _num_bytes(fetched: Fetched) -> int:
    return sum(len(record.data) for record in fetched.episode.records)


@contextlib.asynccontextmanager
async def following(viewer: Viewer) -> AsyncIterator[None]:
    """Keeps the index filled while the context is open."""
    async with anyio.create_task_group() as group:
        group.start_soon(viewer.shown.store.fill, viewer.index)
        yield
        group.cancel_scope.cancel()

"""A file or folder of conversations as a source of episodes, as an archive is one."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anyio.from_thread import check_cancelled
from anyio.to_thread import run_sync

from ops.archive.episodes import StoredEpisode
from ops.sft.episodes import EpisodeMaker
from ops.sft.findings import BadRecord, Findings
from ops.sft.formats import Found, Reader, ReadingOptions
from ops.sft.rendering import RenderedTurn, Renderer
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId

_TOO_LONG = "answers that are longer with their prompts than algorithm_config.cutoff_len: they will be left out of training"
_SAME = "records that are the same as an earlier one"
_TOOLS = "tools, which the model's chat template does not take"
_UNTRAINED = "answers of weight 0: context alone"
_HEADERS = 4096
"""Bytes that a message takes beside its content, generously."""
Holds = Callable[[StoredEpisode], Awaitable[bool]]
"""Whether a run has an episode already. Raises `BadRecord` for one that it has otherwise."""


async def _holds_none(_: StoredEpisode) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Made:
    """An episode, and where its conversation stands."""

    found: Found
    turns: Sequence[RenderedTurn]
    episode: StoredEpisode

    @property
    def num_bytes(self) -> int:
        episode = self.episode
        stored = (*(record.data for record in episode.records), *(judgement.data for judgement in episode.judgements))
        return len(episode.trajectory_data) + sum(map(len, stored))


@dataclass
class Examined:
    """What a look at everything came to, before anything is written."""

    findings: Findings = field(default_factory=lambda: Findings(before_each=check_cancelled))
    taken: set[EpisodeId] = field(default_factory=set)
    """Episodes of the conversations that are good."""
    num_absent: int = 0
    """Of them, those that the run does not have yet."""
    num_bytes: int = 0
    """Of those, to be written."""
    num_answers: int = 0
    """That are to be learnt."""
    num_tokens: int = 0
    """Of those answers."""

    @property
    def num_conversations(self) -> int:
        return len(self.taken)

    def count(self, made: Made, *, is_there: bool) -> None:
        self.taken.add(made.episode.episode)
        self.num_answers += sum(bool(turn.answer_tokens) for turn in made.turns)
        self.num_tokens += sum(len(turn.answer_tokens) for turn in made.turns)
        if not is_there:
            self.num_absent += 1
            self.num_bytes += made.num_bytes


@dataclass(frozen=True, kw_only=True)
class ConversationSource:
    """Read twice: first looked at whole, then written. What is bad is left out of both."""

    path: Path
    read: Reader
    options: ReadingOptions
    renderer: Renderer
    maker: EpisodeMaker
    cutoff_len: int
    max_bytes: int
    """Of one message; 0: not known."""

    async def examine(self, progress: Callable[[Examined], None] = lambda _: None, holds: Holds = _holds_none) -> Examined:
        """Raises `ConfigurationError` where files cannot be read, or hold nothing."""
        examined = Examined()
        async for made in self._pulled(examined.findings):
            try:
                examined.count(made, is_there=await holds(made.episode))
            except BadRecord as error:
                examined.findings.add(made.found.file, made.found.record, error)
            progress(examined)
        if not examined.num_conversations and not examined.findings.problems:
            raise ConfigurationError(f"{self.path} holds no record: name a file of conversations, or their folder")
        return examined

    async def episodes(self, examined: Examined) -> AsyncIterator[StoredEpisode]:
        """The good ones in the order of the files."""
        async for made in self._pulled(Findings(before_each=check_cancelled)):
            if made.episode.episode in examined.taken:
                yield made.episode

    async def _pulled(self, findings: Findings) -> AsyncIterator[Made]:
        """One by one, so that whoever looks can be stopped."""
        each = self._each(findings)
        while (made := await run_sync(next, each, None)) is not None:
            yield made

    def _each(self, findings: Findings) -> Iterator[Made]:
        known: set[EpisodeId] = set()
        for found in self.read(self.path, findings, self.options):
            try:
                made = self._made(found, findings)
            except BadRecord as error:
                findings.add(found.file, found.record, error)
                continue
            if made.episode.episode in known:
                findings.ignore(_SAME)
                continue
            known.add(made.episode.episode)
            yield made

    def _made(self, found: Found, findings: Findings) -> Made:
        """Raises `BadRecord`."""
        conversation = found.conversation
        turns = self.renderer.turns(conversation)
        if all(not turn.answer_tokens for turn in turns):
            raise BadRecord("all of its answers have the weight 0, so there is nothing to imitate")
        episode = self.maker.episode(conversation, turns)
        self._refuse_large(episode)
        if conversation.tools and not self.renderer.takes(conversation.tools):
            findings.ignore(_TOOLS)
        if conversation.messages[-1].role != "assistant":
            findings.ignore("messages behind the last answer")
        for turn in turns:
            if not turn.answer_tokens:
                findings.ignore(_UNTRAINED)
            elif len(turn.prompt_tokens) + len(turn.answer_tokens) > self.cutoff_len:
                findings.ignore(_TOO_LONG)
        return Made(found, turns, episode)

    def _refuse_large(self, episode: StoredEpisode) -> None:
        largest = max(len(record.data) for record in episode.records)
        if 0 < self.max_bytes - _HEADERS < largest:
            raise BadRecord(
                f"an answer or a screenshot of it takes {largest} bytes, and bus_config.max_payload_bytes is {self.max_bytes}"
            )

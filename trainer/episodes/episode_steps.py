"""From the chain to samples: fetches an episode's steps and screenshots, decides which steps count, and keeps what was built.

Invariant: what a sample holds is a function of the chain's records alone, so a sample that was dropped from memory comes back
the same. What meets an error that nobody foresaw is left out and told; the others are built as if it was not there.
"""

import hashlib
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import anyio.to_thread

from bus import chain
from bus.fault import unforeseen
from bus.ports import Bus, Record
from bus.skipping import skip
from bus.subjects import Subjects
from schemas.algorithm_config import AlgorithmConfig
from schemas.errors import MessageCorrupt, MillraceError, TrainerError, UnusableRecord
from schemas.ids import EpisodeId
from schemas.messages import ActionKind, AnyMessage, Observation, RecordRef, StepRequest
from schemas.objective_config import ObjectiveConfig
from trainer.ports import Builder
from trainer.retrying import until_available
from trainer.samples import LeftOut, Patches, Sample

_FETCH_AT_ONCE = 32
OnSurprise = Callable[[Exception, str], Coroutine[Any, Any, object]]
"""Hears what nobody foresaw, and what met it."""
_MOST_MISFITS = 16


class Played(Protocol):
    """Names the records of an episode, as a trajectory does."""

    @property
    def episode(self) -> EpisodeId: ...

    @property
    def steps(self) -> Sequence[RecordRef]: ...

    @property
    def observations(self) -> Sequence[RecordRef]: ...


@dataclass(frozen=True)
class StepRules:
    """Which steps a learner takes of those that a sample can be built of."""

    unparsed: bool
    """Also those whose output could not be parsed: they have tokens and a part in the reward, but nothing to imitate."""
    unchanged: bool
    """Also those that did not change the screenshot."""
    unsampled: bool
    """Also those without the sampler's log-probabilities, as of demonstrations: what they are worth cannot be weighted."""
    earlier: bool = True
    """Also those before the episode's last."""
    least_logprob: float = -math.inf
    """Only those whose answer was sampled with at least this log-probability, in nats."""
    unbuilt: bool = False
    """By what their records say alone: screenshots are fetched and samples built when they are trained on. One that cannot be
    built is left out then."""

    @classmethod
    def of(cls, algorithm: AlgorithmConfig, objective: ObjectiveConfig, *, stored: bool = False) -> "StepRules":
        """`stored`: of a data set, all of which is there before training begins."""
        return cls(
            unparsed=not objective.imitates,
            unchanged=not (algorithm.filter_same_screenshot and objective.imitates),
            unsampled=objective.imitates,
            earlier=not objective.train_on_last_turn,
            least_logprob=_log(algorithm.min_answer_probability) if objective.imitates else -math.inf,
            unbuilt=stored and objective.imitates,
        )


@dataclass
class EpisodeSteps:
    """What one episode offers to train on."""

    usable: list[RecordRef] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    """Completion tokens of each usable one."""
    anchors: list[str] = field(default_factory=list)
    """Of each usable one, a digest of the page that it answered: address and screenshot."""
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    num_tokens: int = 0
    """Sampled in all its steps."""


def _log(probability: float) -> float:
    return math.log(probability) if probability else -math.inf


def _anchor(seen: AnyMessage | None) -> str:
    if not isinstance(seen, Observation):
        return ""
    return hashlib.sha256(seen.url.encode() + b"\0" + seen.screenshot.data).hexdigest()


class StepStore:
    """Samples by the record of their step; the latest `cache_bytes` of them stay in memory."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        builder: Builder,
        *,
        cache_bytes: int,
        rules: StepRules,
        on_surprise: OnSurprise | None = None,
    ) -> None:
        """Without `on_surprise`, what nobody foresaw goes on."""
        self._bus = bus
        self._subjects = subjects
        self._builder = builder
        self._rules = rules
        self._on_surprise = on_surprise
        self._failed: set[RecordRef] = set()
        """Steps that met what nobody foresaw: they are not tried again."""
        self._cache_bytes = cache_bytes
        self._cached: OrderedDict[RecordRef, Sample] = OrderedDict()
        self._cached_bytes = 0
        self._fetching = anyio.CapacityLimiter(_FETCH_AT_ONCE)
        self._building = anyio.CapacityLimiter(1)
        self._misfit: UnusableRecord | None = None
        """The newest of `_num_misfits`."""
        self._num_misfits = 0
        self._has_fitted = False

    async def episode(self, played: Played) -> EpisodeSteps:
        """Fetches an episode whole and builds its samples, unless the rules say otherwise."""
        try:
            return await self._fetched(played)
        except Exception as error:
            surprise = unforeseen(error)
            if surprise is None or self._on_surprise is None:
                raise
            await self._on_surprise(surprise, played.episode)
            return EpisodeSteps(left_out=Counter({LeftOut.FAILED: 1}))

    async def _fetched(self, played: Played) -> EpisodeSteps:
        found = EpisodeSteps()
        steps, observations = played.steps, played.observations
        if not await self._is_whole(steps, observations):
            found.left_out[LeftOut.MISSING] = len(steps)
            return found
        only_steps = self._rules.unbuilt and self._rules.unchanged
        records = await self._records(steps if only_steps else (*steps, *observations))
        chosen: dict[RecordRef, StepRequest] = {}
        for ref in steps:
            step = records.get(ref)
            found.num_tokens += len(step.completion_tokens) if isinstance(step, StepRequest) else 0
            following = observations[ref.step + 1 : ref.step + 2]
            reason = self._reason(step, [records.get(observation) for observation in following], is_last=ref == steps[-1])
            if reason is not None:
                found.left_out[reason] += 1
            elif isinstance(step, StepRequest):
                chosen[ref] = step
        built = chosen.keys() if self._rules.unbuilt else (await self._build(chosen, records)).keys()
        found.usable.extend(ref for ref in chosen if ref in built)
        found.lengths.extend(len(chosen[ref].completion_tokens) for ref in found.usable)
        found.anchors.extend(_anchor(records.get(observations[ref.step])) for ref in found.usable)
        found.left_out.update(LeftOut.FAILED if ref in self._failed else LeftOut.MISSING for ref in chosen if ref not in built)
        return found

    async def samples(self, refs: Sequence[RecordRef]) -> list[Sample]:
        """The samples of these steps, in order; steps that cannot be had any more or cannot be trained on are left out."""
        # Held from here on: building the absent ones may push them out of the cache.
        found = {ref: self._cached[ref] for ref in refs if ref in self._cached}
        for ref in found:
            self._cached.move_to_end(ref)
        absent = [ref for ref in refs if ref not in found]
        if absent:
            steps = {
                ref: record
                for ref, record in (await self._records(absent)).items()
                if isinstance(record, StepRequest) and self._refusal(record) is None
            }
            screenshots = await self._records({screenshot for step in steps.values() for screenshot in step.screenshot_refs})
            found.update(await self._build(steps, screenshots))
        return [found[ref] for ref in refs if ref in found]

    async def _is_whole(self, *refs: Sequence[RecordRef]) -> bool:
        """Whether the chain goes as far as is claimed of it: what was only claimed must not be looked for record by record."""
        last = [each[-1] for each in refs if each]
        return len(await self._records(last)) == len(last)

    def _reason(self, step: AnyMessage | None, following: Sequence[AnyMessage | None], *, is_last: bool) -> LeftOut | None:
        if not isinstance(step, StepRequest):
            return LeftOut.MISSING
        if not is_last and not self._rules.earlier:
            return LeftOut.EARLIER
        # What ends the episode is there to be imitated, whatever the page shows behind it.
        is_answer = step.actions[-1].kind is ActionKind.ANSWER
        unchanged = any(isinstance(record, Observation) and record.same_screenshot for record in following)
        if unchanged and not is_answer and not self._rules.unchanged:
            return LeftOut.UNCHANGED
        return self._refusal(step)

    def _refusal(self, step: StepRequest) -> LeftOut | None:
        """As far as the step itself tells."""
        if not step.parsed and not self._rules.unparsed:
            return LeftOut.UNPARSED
        if not step.logprobs and not self._rules.unsampled:
            return LeftOut.UNSAMPLED
        if sum(step.logprobs) < self._rules.least_logprob:
            return LeftOut.UNLIKELY
        return self._builder.refusal(step)

    async def _records(self, refs: Iterable[RecordRef]) -> dict[RecordRef, AnyMessage]:
        found: dict[RecordRef, AnyMessage] = {}

        async def fetch(ref: RecordRef) -> None:
            async with self._fetching:
                record = await self._record(ref)
            if record is not None:
                found[ref] = record.message

        async with anyio.create_task_group() as group:
            for ref in set(refs):
                group.start_soon(fetch, ref)
        return found

    async def _record(self, ref: RecordRef) -> Record | None:
        try:
            return await until_available(lambda: chain.read(self._bus, self._subjects, ref))
        except MessageCorrupt as error:
            skip(error.subject, error.seq, str(error))
            return None

    async def _build(
        self, steps: dict[RecordRef, StepRequest], records: dict[RecordRef, AnyMessage]
    ) -> dict[RecordRef, Sample]:
        """Builds and keeps the samples whose screenshots are all there."""
        encoded = {ref: record.screenshot.data for ref, record in records.items() if isinstance(record, Observation)}
        complete = {
            ref: step
            for ref, step in steps.items()
            if ref not in self._failed and all(screenshot in encoded for screenshot in step.screenshot_refs)
        }
        if not complete:
            return {}
        built, failed = await anyio.to_thread.run_sync(self._build_now, complete, encoded, limiter=self._building)
        for ref, error in failed.items():
            if self._on_surprise is None:
                raise error
            self._failed.add(ref)
            await self._on_surprise(error, f"{ref.episode}/{ref.attempt}/{ref.step}")
        for ref, sample in built.items():
            self._keep(ref, sample)
        return built

    def _build_now(
        self, steps: dict[RecordRef, StepRequest], encoded: dict[RecordRef, bytes]
    ) -> tuple[dict[RecordRef, Sample], dict[RecordRef, Exception]]:
        """All at once; where nobody foresaw what that meets, one by one, with the errors of those that meet it alone too."""
        try:
            return self._built(steps, encoded), {}
        except MillraceError:
            raise
        except Exception:  # noqa: BLE001 - it comes again, at the step that it belongs to
            built, failed = dict[RecordRef, Sample](), dict[RecordRef, Exception]()
        for ref, step in steps.items():
            try:
                built |= self._built({ref: step}, encoded)
            except MillraceError:
                raise
            except Exception as error:  # noqa: BLE001 - the boundary around one step: it is left out by name
                failed[ref] = error
        return built, failed

    def _built(self, steps: dict[RecordRef, StepRequest], encoded: dict[RecordRef, bytes]) -> dict[RecordRef, Sample]:
        needed = {screenshot: encoded[screenshot] for step in steps.values() for screenshot in step.screenshot_refs}
        patches = self._patches(needed)
        built: dict[RecordRef, Sample] = {}
        for ref, step in steps.items():
            if patches.keys() >= set(step.screenshot_refs):
                with self._left_out(ref):
                    built[ref] = self._builder.build(ref, step, [patches[screenshot] for screenshot in step.screenshot_refs])
        self._check_fit(built)
        return built

    def _patches(self, encoded: dict[RecordRef, bytes]) -> dict[RecordRef, Patches]:
        """All at once; where one of them cannot be cut, one by one."""
        try:
            return dict(zip(encoded, self._builder.patches(list(encoded.values())), strict=True))
        except UnusableRecord:
            cut: dict[RecordRef, Patches] = {}
            for ref, data in encoded.items():
                with self._left_out(ref):
                    (cut[ref],) = self._builder.patches([data])
            return cut

    @contextmanager
    def _left_out(self, ref: RecordRef) -> Iterator[None]:
        try:
            yield
        except UnusableRecord as error:
            self._misfit, self._num_misfits = error, self._num_misfits + 1
            skip(self._subjects.chain_record(ref.episode, ref.attempt, ref.kind, ref.step), 0, str(error))

    def _check_fit(self, built: dict[RecordRef, Sample]) -> None:
        """One record that does not fit is its writer's mistake; where none ever fitted, the settings differ.

        Raises:
            TrainerError: nothing can be trained on.
        """
        self._has_fitted = self._has_fitted or any(sample.screenshots for sample in built.values())
        if self._misfit is not None and not self._has_fitted and self._num_misfits >= _MOST_MISFITS:
            raise TrainerError(f"the first {self._num_misfits} records fit no sample: {self._misfit}") from self._misfit

    def _keep(self, ref: RecordRef, sample: Sample) -> None:
        if ref in self._cached:
            return
        self._cached[ref] = sample
        self._cached_bytes += sample.num_bytes
        while self._cached_bytes > self._cache_bytes and len(self._cached) > 1:
            _, oldest = self._cached.popitem(last=False)
            self._cached_bytes -= oldest.num_bytes

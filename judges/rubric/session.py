"""Questions become recorded answers: what stands on CALLS is used, the rest is asked, and every answer is recorded before it
counts.

Invariant: a question with an accepted answer is not asked again, by whichever worker; one without is asked until its answers
are `openai_config.max_answers`, those of earlier workers included.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import anyio
from msgspec import structs

from bus.presence import Status
from bus.retry import Backoff
from judges.endpoint.port import Answer, Endpoint, Unanswered
from judges.rubric.accounts import Tally, cost_of, require_prices, require_tokens, summed, usage_of
from judges.rubric.asking import Finding, Inquiry, JudgeSession, MalformedVerdict, Unusable
from judges.rubric.budget import Budget
from judges.rubric.journal import Journal, digest_of
from schemas.errors import NoVerdict
from schemas.judge_config import OpenAIConfig
from schemas.messages import AskedQuestion, JudgeCall, StageUsage, Trajectory
from schemas.text import valid

_CUT_OFF = "length"
_KEPT_BACK = "content_filter"
_MOST_CHARACTERS = 200_000
"""Of an answer, for a message has to hold it; a longer one is no verdict."""
_MOST_TIMES_TOKENS = 4
_ASKED_AGAIN = Backoff(0.2, 2.0)


class RecordedSessions:
    """Puts questions to the endpoint of their kind. Satisfies `judges.rubric.asking.JudgeSessions`.

    Raises:
        ConfigurationError: the run's cost is limited, and a model has no price.
    """

    def __init__(
        self,
        *,
        endpoints: Mapping[str, Endpoint],
        journal: Journal,
        budget: Budget,
        config: OpenAIConfig,
        status: Status,
    ) -> None:
        """`endpoints`: by the values of `QuestionKind`."""
        if budget.limits_cost:
            require_prices((endpoint.model for endpoint in endpoints.values()), config.prices)
        self.endpoints = endpoints
        self.journal = journal
        self.budget = budget
        self.config = config
        self.telling = set[str]()
        """Models of which an answer said what it took."""
        self._status = status
        self._tally = Tally()

    async def begin(self, trajectory: Trajectory) -> JudgeSession:
        return RecordedSession(self, trajectory, await self.journal.about(trajectory.episode))

    def charge(self, answer: Answer, model: str) -> float:
        """What it cost; where cost is limited, one that does not say what it took is as dear as the run's dearest."""
        if answer.prompt_tokens:
            self.telling.add(model)
        elif answer.text and self.budget.limits_cost:
            return self.budget.dearest
        return cost_of(answer, self.config.prices.get(model))

    def count(self, call: JudgeCall) -> None:
        """An answer that this worker had, for its heartbeat."""
        self._tally.add(call)
        self._status.metrics.update(self._tally.metrics())

    def count_failures(self, number: int) -> None:
        """Requests of this worker that came to no answer in the end, for its heartbeat."""
        self._tally.num_failures += number
        self._status.metrics.update(self._tally.metrics())


class RecordedSession:
    """Questions about one episode. Satisfies `judges.rubric.asking.JudgeSession`."""

    def __init__(self, sessions: RecordedSessions, trajectory: Trajectory, calls: dict[str, list[JudgeCall]]) -> None:
        self._sessions = sessions
        self._episode = trajectory.episode
        self._calls = calls
        self._asked: dict[str, anyio.Lock] = {}
        """By question; stays when it is answered."""
        self._unanswered = list[StageUsage]()
        """Of questions that came to no answer, for which nothing stands on CALLS."""

    @property
    def usage(self) -> tuple[StageUsage, ...]:
        return summed((*map(usage_of, self._answers()), *self._unanswered))

    @property
    def answered(self) -> tuple[AskedQuestion, ...]:
        return tuple(
            AskedQuestion(stage=call.stage, model=call.model, temperature=call.temperature, screenshots=call.screenshots)
            for call in self._answers()
            if call.accepted
        )

    def _answers(self) -> Iterator[JudgeCall]:
        """To what this session asked; another judge of the rubric may have asked about the episode too."""
        return (call for question in self._asked for call in self._calls.get(question, ()))

    async def ask(self, inquiry: Inquiry) -> Finding:
        model = self._sessions.endpoints[inquiry.kind].model
        digest = digest_of(model, inquiry.question, inquiry.vote)
        async with self._asked.setdefault(digest, anyio.Lock()):
            return await self._ask(inquiry, digest)

    async def _ask(self, inquiry: Inquiry, digest: str) -> Finding:
        calls = self._calls.setdefault(digest, [])
        max_answers = self._sessions.config.max_answers
        number, reason = 0, ""
        while True:
            if number == len(calls):
                if number >= max_answers:
                    raise Unusable(f"{inquiry.stage}: {number} answers hold no verdict, the last: {reason}")
                await anyio.sleep(_ASKED_AGAIN.pause_s(number))
                await self._have_answered(inquiry, digest, calls)
            call = calls[number]
            try:
                finding = _finding_in(inquiry, call.text, call.finish_reason)
            except MalformedVerdict as malformed:
                reason = str(malformed)
            else:
                if call.accepted:
                    return finding
                reason = "it was not taken for one"
            number += 1

    async def _have_answered(self, inquiry: Inquiry, digest: str, calls: list[JudgeCall]) -> None:
        """Has the question answered once more. Another worker may have had it answered meanwhile: then that counts."""
        asker = self._sessions
        endpoint = asker.endpoints[inquiry.kind]
        num_cut_off = sum(call.finish_reason == _CUT_OFF for call in calls)
        max_tokens = asker.config.max_completion_tokens * min(2**num_cut_off, _MOST_TIMES_TOKENS)
        async with asker.budget.call() as reserved:
            try:
                answer = await endpoint.ask(inquiry.question, max_completion_tokens=max_tokens)
            except Unanswered as error:
                asker.count_failures(error.num_failures)
                self._unanswered.append(StageUsage(stage=inquiry.stage, model=endpoint.model, num_failures=error.num_failures))
                raise NoVerdict(f"{inquiry.stage}: {error}") from error
            call = self._call(inquiry, digest, endpoint.model, answer)
            while True:
                stored = await asker.journal.record(structs.replace(call, answer=len(calls)))
                calls.append(stored.call)
                reserved.seq = stored.seq
                if stored.is_own:
                    asker.count(call)
                if stored.is_own or stored.call.accepted:
                    break
        if asker.budget.limits_cost and answer.text:
            require_tokens(endpoint.model, asker.telling)

    def _call(self, inquiry: Inquiry, digest: str, model: str, answer: Answer) -> JudgeCall:
        asker = self._sessions
        # One more than is kept, so that a longer one is seen to be longer.
        text = valid(answer.text, _MOST_CHARACTERS + 1)
        try:
            _finding_in(inquiry, text, answer.finish_reason)
            accepted = True
        except MalformedVerdict:
            accepted = False
        return JudgeCall(
            episode=self._episode,
            rubric=asker.journal.rubric,
            stage=inquiry.stage,
            question=digest,
            answer=0,
            model=model,
            text=text[:_MOST_CHARACTERS],
            accepted=accepted,
            finish_reason=_CUT_OFF if len(text) > _MOST_CHARACTERS else answer.finish_reason,
            screenshots=inquiry.screenshots,
            temperature=answer.temperature,
            num_failures=answer.num_failures,
            prompt_tokens=answer.prompt_tokens,
            cached_tokens=answer.cached_tokens,
            completion_tokens=answer.completion_tokens,
            cost=asker.charge(answer, model),
            seconds=answer.seconds,
            judge=asker.journal.worker,
        )


def _finding_in(inquiry: Inquiry, text: str, finish_reason: str) -> Finding:
    """The verdict that an answer holds. Raises `MalformedVerdict`, with the reason in words."""
    if finish_reason == _CUT_OFF or len(text) > _MOST_CHARACTERS:
        raise MalformedVerdict(f"an answer was cut off after {len(text):,} characters")
    if finish_reason == _KEPT_BACK:
        raise MalformedVerdict("the endpoint's content filter kept the answer back")
    if not text.strip():
        raise MalformedVerdict("an answer was empty")
    finding = inquiry.read(text)
    # JSON may escape what the text around it does not hold.
    return replace(finding, reasoning=valid(finding.reasoning))

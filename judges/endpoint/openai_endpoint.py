"""One model behind one OpenAI-compatible address."""

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import anyio
import openai
import structlog

from judges.endpoint.addresses import Address
from judges.endpoint.faults import PERSON_AWAITED_S, Fault, Filtered, Misconfigured, Refused, Retry, backoff_s, fault_of
from judges.endpoint.forms import Form, FormMemory
from judges.endpoint.gate import Gate
from judges.endpoint.limits import exhausted_for_s
from judges.endpoint.port import Answer, Question, Unanswered
from judges.endpoint.wire import NoCompletion, filtered_answer, messages_of, read_completion, response_format
from schemas.errors import ConfigurationError
from schemas.judge_config import OpenAIConfig

_log = structlog.get_logger()


class OpenAIEndpoint:
    """Chat completions of `address.model`. What the endpoint does not take (a form of answer, a temperature) is remembered.

    Invariant: `key` is in no log, no error and no repr.
    """

    def __init__(
        self,
        *,
        client: openai.AsyncOpenAI,
        gate: Gate,
        address: Address,
        config: OpenAIConfig,
        key: str | None,
        rng: random.Random,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._gate = gate
        self._address = address
        self._config = config
        self._key = key
        self._rng = rng
        self._wall_clock = wall_clock
        self._forms = FormMemory(config.structured_output)
        self._temperature = config.temperature
        self._has_answered = False

    @property
    def model(self) -> str:
        return self._address.model

    @property
    def waiting(self) -> str:
        """What questions wait for at this address, for people; empty: nothing but their turn."""
        return self._gate.waiting

    async def ask(self, question: Question, *, max_completion_tokens: int) -> Answer:
        patience, forms, num_failures = _Patience(self._config.patience_s), list(self._forms.to_try), 0
        try:
            while True:
                form, temperature = forms[0], self._temperature
                async with self._gate.turn():
                    await self._opened(patience)
                    said = await self._call(question, form, temperature, max_completion_tokens)
                if isinstance(said, Answer):
                    self._has_answered = True
                    self._forms.taken(form, question.schema_name)
                    return replace(said, num_failures=num_failures)
                if isinstance(said, Filtered):
                    return replace(filtered_answer(), num_failures=num_failures)
                num_failures += 1
                match said:
                    case Misconfigured():
                        await self._wait(self._mended_later(said), patience, num_failures)
                    case Refused():
                        self._ask_otherwise(said, question, forms, temperature)
                    case Retry():
                        await self._wait(said, patience, num_failures)
        except _GaveUp as gave_up:
            raise Unanswered(f"{self} {gave_up}", num_failures) from None

    def __str__(self) -> str:
        return f"{self._address.base_url} (model {self.model!r})"

    async def _opened(self, patience: "_Patience") -> None:
        if reason := self._gate.closed_by:
            patience.lost(reason)
        with patience.kept():
            await self._gate.opened()

    async def _call(self, question: Question, form: Form, temperature: float | None, max_tokens: int) -> Answer | Fault:
        """One request, which nothing of this program repeats."""
        started = anyio.current_time()
        try:
            with anyio.fail_after(self._config.timeout_s):
                response = await self._client.chat.completions.with_raw_response.create(
                    model=self.model,
                    # The client walks through every value of its own arguments, which takes longer than all the rest.
                    messages=(),
                    extra_body={"messages": messages_of(question)},
                    max_completion_tokens=max_tokens,
                    temperature=openai.omit if temperature is None else temperature,
                    **response_format(form, question),
                )
        except TimeoutError:
            return Retry("no answer in time")
        except openai.OpenAIError as error:
            return self._without_key(fault_of(error, now=self._wall_clock()))
        if pause_s := exhausted_for_s(response.headers):
            self._gate.close(pause_s, "its rate limit is used up")
        try:
            said = read_completion(response.content)
            return replace(said, seconds=anyio.current_time() - started, temperature=temperature)
        except NoCompletion:
            return Retry("a reply that is no completion")

    async def _wait(self, fault: Retry, patience: "_Patience", num_failures: int) -> None:
        # "At once" is no time to wait either: an endpoint that goes on saying so would be called without end.
        delay_s = fault.after_s or backoff_s(num_failures, self._rng)
        log = _log.warning if fault.for_a_person else _log.info
        log("endpoint_failed", endpoint=str(self), reason=fault.reason, wait_s=round(delay_s, 3), num_failures=num_failures)
        patience.lost(fault.reason)
        if fault.for_all:
            self._gate.close(delay_s, fault.reason)
            return
        with patience.kept(), self._gate.troubled(fault.reason):
            await anyio.sleep(delay_s)

    def _ask_otherwise(self, fault: Refused, question: Question, forms: list[Form], temperature: float | None) -> None:
        """Raises `_GaveUp` when there is no other way to ask."""
        if fault.parameter == "temperature" and temperature is not None:
            self._temperature = None
        elif fault.may_be_of_form and self._forms.may_cure(forms[0], question.schema_name, fault.reason) and len(forms) > 1:
            forms.pop(0)
        else:
            raise _GaveUp(f"refuses the question: {fault.reason}")
        _log.info("endpoint_refused", endpoint=str(self), reason=fault.reason, next_form=forms[0])

    def _mended_later(self, fault: Misconfigured) -> Retry:
        """Of who has answered before. Others are not kept waiting: it may be one question alone that is forbidden.

        Raises:
            ConfigurationError: it has answered nothing yet.
        """
        setting, variable = self._address.setting, self._address.key_env_var
        key = f"the key in {variable}" if variable else "whether it asks for a key"
        advice = f"check {key}, {setting}.base_url and {setting}.model"
        if not self._has_answered:
            raise ConfigurationError(f"{self} refuses the request: {fault.reason}; {advice}")
        return Retry(f"{fault.reason}: {advice}", PERSON_AWAITED_S, for_a_person=True)

    def _without_key(self, fault: Fault) -> Fault:
        return replace(fault, reason=fault.reason.replace(self._key, "[key]")) if self._key else fault


class _GaveUp(Exception):
    """On one question; says why."""


class _Patience:
    """Until when one question may still wait: so long after the first time that the endpoint failed it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = math.inf
        self._reason = ""

    def lost(self, reason: str) -> None:
        self._deadline = min(self._deadline, anyio.current_time() + self._seconds)
        self._reason = reason

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Raises `_GaveUp` when the block outlasts the patience, or begins after it."""
        if anyio.current_time() < self._deadline:
            with anyio.CancelScope(deadline=self._deadline) as scope:
                yield
            if not scope.cancelled_caught:
                return
        raise _GaveUp(f"gave no answer within {self._seconds:g} s of its first failure: {self._reason}")

"""Any OpenAI-compatible endpoint as a policy. It samples and hides its tokens, so its answers are played, not trained on."""

import base64
import os
from types import TracebackType
from typing import Annotated, Any

import msgspec
import openai

from agents.engine import ChatMessage, Generation, GenerationRequest, Weightless
from schemas.endpoint_errors import is_of_filter, is_of_key
from schemas.errors import ConfigurationError, MillraceError, PolicyError, PromptRefused, PromptTooLong
from schemas.messages import Screenshot, TokenUsage
from schemas.policy_config import PolicyConfig

_TOO_LONG = ("context_length_exceeded", "input_tokens", "input_text")
_PASSING = (402, 408, 409, 429)
"""Refusals, as of a quota or a rate, that say nothing of what was asked."""


class _Message(msgspec.Struct):
    content: str | None = None


class _Token(msgspec.Struct):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    """What is read of a reply. The client passes on whatever came, also what is no completion."""

    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: Any = None


class OpenAIEngine(Weightless):
    """Chat completions of `policy_config.base_model` at `policy_config.base_url`; screenshots travel as data URLs.

    Raises:
        ConfigurationError: the key's environment variable is not set, or no model is named.
    """

    def __init__(self, policy: PolicyConfig) -> None:
        key = os.environ.get(policy.api_key_env_var)
        if not key:
            raise ConfigurationError(
                f"{policy.api_key_env_var} is not set: put the endpoint's key there (any text if it asks for none), "
                "or name another variable in policy_config.api_key_env_var"
            )
        if not policy.base_model:
            raise ConfigurationError("policy_config.base_model is empty: write the name by which the endpoint knows the model")
        self._policy = policy
        # Retries are the queue's work: a second try may go to another worker.
        self._client = openai.AsyncOpenAI(
            api_key=key, base_url=policy.base_url or None, timeout=policy.vllm_timeout, max_retries=0
        )
        self._gives_logprobs = True
        self._has_answered = False

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()

    async def generate(self, request: GenerationRequest) -> Generation:
        """Log-probabilities stand in the answer when the server gives them; token ids never do.

        Raises:
            PromptTooLong: the endpoint refuses the length, all earlier rounds left out.
            PromptRefused: it refuses this prompt, as a content filter does.
            PolicyError: the endpoint could not be reached, took too long, failed, or gave a reply that is no completion.
            ConfigurationError: it refuses the key, or does not know the model or the path; once it has answered: PolicyError.
        """
        where = f"{self._client.base_url} (model {self._policy.base_model!r})"
        try:
            while True:
                try:
                    generation = await self._complete(request)
                except openai.BadRequestError as error:
                    if not _is_too_long(error):
                        raise
                    request = _shorter(request, where, error)
                else:
                    self._has_answered = True
                    return generation
        except openai.APIStatusError as error:
            raise self._failure(error, where, request) from error
        except openai.OpenAIError as error:
            raise PolicyError(f"{where} gave no answer: {error}") from error
        except (ValueError, RecursionError, msgspec.ValidationError) as error:
            raise PolicyError(f"{where} gave a reply that is no completion ({error}); check policy_config.base_url") from error

    def _failure(self, error: openai.APIStatusError, where: str, request: GenerationRequest) -> MillraceError:
        status = error.status_code
        if not 400 <= status < 500 or status in _PASSING:
            return PolicyError(f"{where} gave no answer: {error}")
        # Whoever was answered has a key: what is forbidden later is this prompt.
        of_key = status == 401 or (status == 403 and not self._has_answered) or is_of_key(error.body)
        if (of_key or status == 404) and not is_of_filter(error.code):
            failure = PolicyError if self._has_answered else ConfigurationError
            return failure(
                f"{where} refuses the request: {error}; check policy_config.base_url, base_model and the key in "
                f"{self._policy.api_key_env_var}"
            )
        step = f"step {request.observation.step} of {request.observation.episode}"
        return PromptRefused(f"{where} refuses {step}: {error}")

    async def _complete(self, request: GenerationRequest) -> Generation:
        arguments: dict[str, Any] = {
            "model": self._policy.base_model,
            "messages": [_wire(message) for message in request.messages],
            "temperature": request.temperature,
            "top_p": self._policy.top_p,
            "max_tokens": self._policy.max_new_tokens,
        }
        if self._gives_logprobs:
            try:
                return _generation(await self._client.chat.completions.create(**arguments, logprobs=True), request)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                # Either logprobs are refused here, or the request is bad anyway: the next lines tell.
                if _is_too_long(error) or is_of_filter(error.code) or is_of_key(error.body):
                    raise
        answer = _generation(await self._client.chat.completions.create(**arguments), request)
        self._gives_logprobs = False
        return answer


def _is_too_long(error: openai.APIStatusError) -> bool:
    """By the endpoint's own word for it: a code of OpenAI's, or the parameter that vLLM names."""
    return error.code in _TOO_LONG or error.param in _TOO_LONG


def _shorter(request: GenerationRequest, where: str, error: openai.BadRequestError) -> GenerationRequest:
    shorter = request.shorter()
    if shorter is None:
        raise PromptTooLong(
            f"{where} cannot read step {request.observation.step} of {request.observation.episode} without any earlier round: "
            f"{error}; take a model with a longer context, lower policy_config.max_new_tokens, or show less of a page"
        ) from error
    return shorter


def _generation(answer: Any, request: GenerationRequest) -> Generation:
    completion = msgspec.convert(answer, type=_Completion, from_attributes=True)
    choice = completion.choices[0]
    tokens = choice.logprobs.content if choice.logprobs else None
    return Generation(
        text=choice.message.content or "",
        finish_reason=choice.finish_reason or "",
        logprobs=tuple(token.logprob for token in tokens or ()),
        temperature=request.temperature,
        num_dropped=request.num_dropped,
        usage=_usage(completion.usage),
    )


def _usage(counted: Any) -> TokenUsage | None:
    """None where the endpoint counts nothing. The client passes on whatever stands there, of whatever type."""
    if counted is None:
        return None
    details = getattr(counted, "prompt_tokens_details", None)
    return TokenUsage(
        prompt=_count(counted, "prompt_tokens"),
        completion=_count(counted, "completion_tokens"),
        cached=_count(details, "cached_tokens"),
    )


def _count(counted: Any, name: str) -> int:
    value = getattr(counted, name, None)
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def _wire(message: ChatMessage) -> dict[str, object]:
    if all(isinstance(part, str) for part in message.content):
        return {"role": message.role, "content": "".join(part for part in message.content if isinstance(part, str))}
    return {"role": message.role, "content": [_wire_part(part) for part in message.content]}


def _wire_part(part: str | Screenshot) -> dict[str, object]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data = base64.b64encode(part.data).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}

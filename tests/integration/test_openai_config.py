"""Every key of `openai_config` takes effect: seen at scripted endpoints, through files as people write them."""

import asyncio
import itertools
import time
from pathlib import Path

import anyio
import pytest

from judges.endpoint.addresses import resolve_addresses
from ops.config.loading import dump_config, load_config
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Verdict
from tests.deadlines import HANGS_S
from tests.support.judging.asked_judge import hoped_for, kind_of, ruled
from tests.support.judging.endpoint_replies import HANG, Reply, failed, says, server_error
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.scripted_endpoint import ScriptedEndpoint, scripted_endpoint

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
OPENAI = "https://api.openai.com/v1"
LIGHT = ("gemini-2.5-flash-lite", GEMINI, "GEMINI_API_KEY")
DEFAULT = ("gemini-3-flash-preview", GEMINI, "GEMINI_API_KEY")
PRO = ("gemini-3-pro", GEMINI, "GEMINI_API_KEY")
MINE, MINE_LIGHT = (DEFAULT[0], GEMINI, "MY_GEMINI_KEY"), (LIGHT[0], GEMINI, "MY_GEMINI_KEY")
OTHER = ("gpt-4o-mini", OPENAI, "OPENAI_API_KEY")
LOCAL = ("gemini-3-flash-preview", "http://127.0.0.1:8000/v1", None)
KINDS = ("keypoint_detection", "blocking_detection", "evaluation")
# The examples of WebGym's configuration reference, as they stand there.
ONE_PROVIDER = """
openai_config:
  # Default configuration for evaluation
  model: "gemini-3-flash-preview"
  openai_api_key_env_var: "GEMINI_API_KEY"
  base_url: "https://generativelanguage.googleapis.com/v1beta/openai/"

  # Use lighter model for high-volume operations
  keypoint_detection:
    model: "gemini-2.5-flash-lite"
  blocking_detection:
    model: "gemini-2.5-flash-lite"
  evaluation:
    model: "gemini-3-flash-preview"
"""
TWO_PROVIDERS = """
openai_config:
  # Default: OpenAI for evaluation
  model: "gpt-4o-mini"
  openai_api_key_env_var: "OPENAI_API_KEY"

  # Use Gemini for high-volume keypoint detection (cheaper)
  keypoint_detection:
    model: "gemini-3-flash-preview"
    openai_api_key_env_var: "GEMINI_API_KEY"
    base_url: "https://generativelanguage.googleapis.com/v1beta/openai/"
"""


def of_file(folder: Path, text: str, *overrides: str) -> Config:
    """As a person's own file on top of the recipes, with the rubric judge."""
    file = folder / "mine.yaml"
    file.write_text(f"defaults: [update_online]\n{text}\n")
    return load_config(file, ["judge_config.judge=rubric_v1", *overrides])


def asking(folder: Path, endpoint: ScriptedEndpoint, *overrides: str) -> Config:
    own = [f"openai_config.{override}" for override in overrides]
    return of_file(folder, "", "openai_config.model=m", f"openai_config.base_url={endpoint.base_url}", *own)


def addresses(config: Config) -> dict[str, tuple[str, str, str | None]]:
    found = resolve_addresses(config.openai_config)
    return {kind: (found[kind].model, found[kind].base_url, found[kind].key_env_var) for kind in KINDS}


def asked_of(endpoint: ScriptedEndpoint, seen: list[Asked]) -> dict[str, set[tuple[str, str]]]:
    """Model and key of the requests of each kind."""
    assert len(endpoint.requests) == len(seen)
    return {kind: {(asked.model, asked.key) for asked in seen if kind_of(asked) == kind} for kind in KINDS}


class TestAddresses:
    def test_the_example_with_one_provider(self, tmp_path: Path) -> None:
        assert addresses(of_file(tmp_path, ONE_PROVIDER)) == {
            "keypoint_detection": LIGHT,
            "blocking_detection": LIGHT,
            "evaluation": DEFAULT,
        }

    def test_the_recipes_are_that_example(self, tmp_path: Path) -> None:
        assert addresses(of_file(tmp_path, "")) == addresses(of_file(tmp_path, ONE_PROVIDER))

    def test_the_example_with_two_providers(self, tmp_path: Path) -> None:
        assert addresses(of_file(tmp_path, TWO_PROVIDERS)) == {
            "keypoint_detection": ("gemini-3-flash-preview", GEMINI, "GEMINI_API_KEY"),
            "blocking_detection": OTHER,
            "evaluation": OTHER,
        }

    @pytest.mark.parametrize(
        ("overrides", "keypoint", "blocking", "evaluation"),
        [
            ([], LIGHT, LIGHT, DEFAULT),
            (["model=gpt-4o-mini", "openai_api_key_env_var=OPENAI_API_KEY"], OTHER, OTHER, OTHER),
            (["model=gemini-3-pro"], PRO, PRO, PRO),
            (["evaluation.model=gemini-3-pro"], LIGHT, LIGHT, PRO),
            (["keypoint_detection.model=gemini-3-flash-preview"], DEFAULT, LIGHT, DEFAULT),
            ([f"base_url={GEMINI}"], LIGHT, LIGHT, DEFAULT),
            (["openai_api_key_env_var=MY_GEMINI_KEY", f"base_url={GEMINI}"], MINE_LIGHT, MINE_LIGHT, MINE),
            (["base_url=http://127.0.0.1:8000/v1"], LOCAL, LOCAL, LOCAL),
        ],
    )
    @pytest.mark.parametrize("is_stored", [False, True], ids=["recipe", "stored run"])
    def test_the_light_model_is_asked_only_in_place_of_the_default_one_at_gemini(
        self,
        tmp_path: Path,
        overrides: list[str],
        keypoint: tuple[str, str, str | None],
        blocking: tuple[str, str, str | None],
        evaluation: tuple[str, str, str | None],
        is_stored: bool,
    ) -> None:
        named = [f"openai_config.{override}" for override in overrides]
        stored = tmp_path / "config.yaml"
        stored.write_text(dump_config(load_config("update_online")))
        config = load_config(stored if is_stored else "update_online", named)
        found = {"keypoint_detection": keypoint, "blocking_detection": blocking, "evaluation": evaluation}
        assert addresses(config) == found
        # What was not named is not stored as if it had been: a later override finds it open.
        stored.write_text(dump_config(config))
        assert addresses(load_config(stored)) == found
        assert load_config(stored) == config

    async def test_both_examples_at_endpoints_on_loopback(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GEMINI_API_KEY", "key-g")
        monkeypatch.setenv("OPENAI_API_KEY", "key-o")
        seen: list[Asked] = []

        def script(asked: Asked) -> Reply:
            seen.append(asked)
            return hoped_for(asked)

        async with scripted_endpoint(script) as endpoint:
            # Gemini's key is for Gemini: an address elsewhere does not get it unless a person names it there.
            await ruled(of_file(tmp_path, ONE_PROVIDER.replace(GEMINI, endpoint.base_url)), tmp_path)
            assert asked_of(endpoint, seen) == {
                "keypoint_detection": {("gemini-2.5-flash-lite", "none")},
                "blocking_detection": {("gemini-2.5-flash-lite", "none")},
                "evaluation": {("gemini-3-flash-preview", "none")},
            }
            seen.clear()
            endpoint.requests.clear()
            both = of_file(
                tmp_path, TWO_PROVIDERS.replace(GEMINI, endpoint.base_url), f"openai_config.base_url={endpoint.base_url}"
            )
            await ruled(both, tmp_path)
            assert asked_of(endpoint, seen) == {
                "keypoint_detection": {("gemini-3-flash-preview", "key-g")},
                "blocking_detection": {("gpt-4o-mini", "key-o")},
                "evaluation": {("gpt-4o-mini", "key-o")},
            }

    @pytest.mark.parametrize("group", ["", *KINDS])
    @pytest.mark.parametrize("keys", [("model",), ("key",), ("base_url",), ("model", "key", "base_url")], ids="+".join)
    async def test_each_key_of_each_group(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, keys: tuple[str, ...]
    ) -> None:
        """What is named somewhere counts there; the rest stays as at the top."""
        monkeypatch.setenv("KEY_A", "key-a")
        monkeypatch.setenv("KEY_B", "key-b")
        seen = dict[str, set[tuple[str, str, str]]]()

        def at(name: str, asked: Asked) -> Reply:
            seen.setdefault(kind_of(asked), set()).add((name, asked.model, asked.key))
            return hoped_for(asked)

        async with (
            scripted_endpoint(lambda asked: at("a", asked)) as endpoint_a,
            scripted_endpoint(lambda asked: at("b", asked)) as endpoint_b,
        ):
            top = {"model": "model-a", "openai_api_key_env_var": "KEY_A", "base_url": endpoint_a.base_url}
            other = {"model": "model-b", "openai_api_key_env_var": "KEY_B", "base_url": endpoint_b.base_url}
            named = [{"key": "openai_api_key_env_var"}.get(key, key) for key in keys]
            prefix = f"openai_config.{group}." if group else "openai_config."
            overrides = [
                *(f"openai_config.{key}={value}" for key, value in top.items()),
                *(f"{prefix}{key}={other[key]}" for key in named),
            ]
            ruling, _ = await ruled(of_file(tmp_path, "", *overrides), tmp_path)
        assert ruling.verdict is Verdict.SUCCESS
        changed = ("b" if "base_url" in keys else "a", "model-b" if "model" in keys else "model-a", "key-a")
        if "key" in keys:
            changed = (*changed[:2], "key-b")
        elif "base_url" in keys and group:
            changed = (*changed[:2], "none")  # the key of one address is not sent to another
        expected = {kind: {changed} if group in ("", kind) else {("a", "model-a", "key-a")} for kind in KINDS}
        assert seen == expected

    async def test_a_missing_key_is_said_before_anything_is_asked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("GEMINI_API_KEY", raising=False)
        with pytest.raises(ConfigurationError, match="GEMINI_API_KEY is not set: put the key for https://generativelanguage"):
            await ruled(of_file(tmp_path, ""), tmp_path)


class TestAsking:
    """How it is asked, counted on the question that is answered otherwise."""

    async def test_timeout_s(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        loop, timeout_s = asyncio.get_running_loop(), HANGS_S / 2

        def script(_: Asked) -> Reply:
            # Its time is over as soon as it has arrived.
            monkeypatch.setattr(loop, "time", lambda: time.monotonic() + timeout_s)
            return HANG

        async with scripted_endpoint(script) as endpoint:
            ruling, _ = await ruled(asking(tmp_path, endpoint, f"timeout_s={timeout_s}", "patience_s=0"), tmp_path)
        assert ruling.error.endswith("gave no answer within 0 s of its first failure: no answer in time")
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize(("patience_s", "more_than_one"), [(0, False), (HANGS_S / 2, True)])
    async def test_patience_s(
        self, tmp_path: Path, patience_s: float, more_than_one: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loop = asyncio.get_running_loop()

        def script(asked: Asked) -> Reply:
            if asked.index:  # the patience is over as soon as it was asked again
                monkeypatch.setattr(loop, "time", lambda: time.monotonic() + patience_s)
            return server_error(retry_after_ms=5)

        async with scripted_endpoint(script) as endpoint:
            ruling, _ = await ruled(asking(tmp_path, endpoint, f"patience_s={patience_s}", f"timeout_s={HANGS_S}"), tmp_path)
        assert ruling.verdict is Verdict.ERROR
        assert f"within {patience_s:g} s of its first failure: 500" in ruling.error
        assert (len(endpoint.requests) > 1) is more_than_one

    @pytest.mark.parametrize("max_answers", [1, 3])
    async def test_max_answers(self, tmp_path: Path, max_answers: int) -> None:
        async with scripted_endpoint(lambda _: says("SUCCESS")) as endpoint:
            ruling, calls = await ruled(asking(tmp_path, endpoint, f"max_answers={max_answers}"), tmp_path)
        assert (ruling.verdict, len(endpoint.requests), len(calls)) == (Verdict.ERROR, max_answers, max_answers)
        assert [call.accepted for call in calls] == [False] * max_answers

    @pytest.mark.parametrize("max_concurrent", [1, 3])
    async def test_max_concurrent(self, tmp_path: Path, max_concurrent: int) -> None:
        """Six key points could be asked at once. Who is inside stays until more have come, or none did for a while."""
        more = anyio.Event()

        async def script(asked: Asked) -> Reply:
            if kind_of(asked) == "keypoint_detection" and not more.is_set():
                await endpoint.arrived(1 + max_concurrent)
                with anyio.move_on_after(0.4):
                    await endpoint.arrived(1 + max_concurrent + 1)
                more.set()
            return hoped_for(asked)

        async with scripted_endpoint(script) as endpoint:
            await ruled(asking(tmp_path, endpoint, f"max_concurrent={max_concurrent}"), tmp_path, num_steps=7)
        assert endpoint.most_under_way == max_concurrent

    @pytest.mark.parametrize("form", ["json_schema", "json_object", "text"])
    async def test_structured_output(self, tmp_path: Path, form: str) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            ruling, _ = await ruled(asking(tmp_path, endpoint, f"structured_output={form}"), tmp_path)
        assert ruling.verdict is Verdict.SUCCESS
        assert {request.form for request in endpoint.requests} == {"" if form == "text" else form}

    async def test_structured_output_auto_finds_what_the_endpoint_takes(self, tmp_path: Path) -> None:
        def script(asked: Asked) -> Reply:
            return failed(400, param="response_format") if asked.form == "json_schema" else hoped_for(asked)

        async with scripted_endpoint(script) as endpoint:
            ruling, _ = await ruled(asking(tmp_path, endpoint), tmp_path)
        assert ruling.verdict is Verdict.SUCCESS
        forms = [request.form for request in endpoint.requests]
        assert [form for form, _ in itertools.groupby(forms)] == ["json_schema", "json_object"]

    @pytest.mark.parametrize(("written", "sent"), [("0.7", 0.7), ("0", 0.0), ("null", None)])
    async def test_temperature(self, tmp_path: Path, written: str, sent: float | None) -> None:
        bodies = await self._bodies(tmp_path, f"temperature={written}")
        assert {body.get("temperature") for body in bodies} == {sent}
        assert all(("temperature" in body) is (sent is not None) for body in bodies)

    async def test_max_completion_tokens(self, tmp_path: Path) -> None:
        assert {body["max_completion_tokens"] for body in await self._bodies(tmp_path, "max_completion_tokens=77")} == {77}

    async def test_prices(self, tmp_path: Path) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            config = asking(tmp_path, endpoint, "prices={m: {input: 2, output: 5, cached_input: 0.5}}")
            ruling, calls = await ruled(config, tmp_path)
        used = [request.usage for request in endpoint.requests]
        expected = sum(
            2 * (usage.prompt_tokens - usage.cached_tokens) + 0.5 * usage.cached_tokens + 5 * usage.completion_tokens
            for usage in used
        )
        assert expected > 0
        assert sum(usage.cost for usage in ruling.usage) == pytest.approx(expected / 1e6)
        assert sum(call.cost for call in calls) == pytest.approx(expected / 1e6)

    async def _bodies(self, folder: Path, override: str) -> list[dict[str, object]]:
        bodies = list[dict[str, object]]()

        def script(asked: Asked) -> Reply:
            bodies.append(dict(asked.body))
            return hoped_for(asked)

        async with scripted_endpoint(script) as endpoint:
            await ruled(asking(folder, endpoint, override), folder)
        return bodies

"""Who answers which kind of question, and whose key is sent where."""

import pytest

from judges.endpoint.addresses import GROUPS, Address, key_of, resolve_addresses
from judges.rubric.asking import QuestionKind
from schemas.errors import ConfigurationError
from schemas.judge_config import OpenAIConfig, QuestionConfig

GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
OPENAI = "https://api.openai.com/v1"
LOCAL = "http://127.0.0.1:8000/v1"
OWN = "https://models.example.org/v1"


def _short(address: Address) -> tuple[str, str, str | None]:
    return address.model, address.base_url, address.key_env_var


def test_the_groups_are_the_kinds_of_question() -> None:
    assert list(GROUPS) == [kind.value for kind in QuestionKind]


@pytest.mark.parametrize(
    ("default", "group", "expected"),
    [
        # As in the reference: one provider, a lighter model for one group.
        ({}, {}, ("gemini-3-flash-preview", GEMINI, "GEMINI_API_KEY")),
        ({}, {"model": "light"}, ("light", GEMINI, "GEMINI_API_KEY")),
        ({"base_url": GEMINI}, {"model": "light"}, ("light", GEMINI, "GEMINI_API_KEY")),
        # As in the reference: OpenAI, and Gemini for one group.
        (
            {"model": "m", "openai_api_key_env_var": "OPENAI_API_KEY"},
            {"model": "g", "openai_api_key_env_var": "GEMINI_API_KEY", "base_url": GEMINI},
            ("g", GEMINI, "GEMINI_API_KEY"),
        ),
        ({"model": "m", "openai_api_key_env_var": "OPENAI_API_KEY"}, {}, ("m", OPENAI, "OPENAI_API_KEY")),
        # A known variable tells the provider, also when the default is elsewhere.
        (
            {"base_url": OWN, "openai_api_key_env_var": "OWN_KEY"},
            {"openai_api_key_env_var": "OPENAI_API_KEY"},
            ("gemini-3-flash-preview", OPENAI, "OPENAI_API_KEY"),
        ),
        # The default's own variable, written out, is not another provider.
        (
            {"base_url": OWN, "openai_api_key_env_var": "OPENAI_API_KEY"},
            {"openai_api_key_env_var": "OPENAI_API_KEY"},
            ("gemini-3-flash-preview", OWN, "OPENAI_API_KEY"),
        ),
        # Another account at the same address.
        (
            {"base_url": OWN, "openai_api_key_env_var": "OWN_KEY"},
            {"openai_api_key_env_var": "SECOND_KEY"},
            ("gemini-3-flash-preview", OWN, "SECOND_KEY"),
        ),
        # Another path of the same host keeps its key.
        (
            {"base_url": OWN, "openai_api_key_env_var": "OWN_KEY"},
            {"base_url": "https://models.example.org/v2"},
            ("gemini-3-flash-preview", "https://models.example.org/v2", "OWN_KEY"),
        ),
        # This machine asks for no key, and gets nobody's.
        ({}, {"base_url": LOCAL, "model": "m"}, ("m", LOCAL, None)),
        ({"base_url": LOCAL}, {}, ("gemini-3-flash-preview", LOCAL, None)),
        ({"base_url": LOCAL, "openai_api_key_env_var": ""}, {}, ("gemini-3-flash-preview", LOCAL, None)),
        ({}, {"base_url": "http://localhost:1/v1"}, ("gemini-3-flash-preview", "http://localhost:1/v1", None)),
        ({}, {"base_url": "http://[::1]:1/v1"}, ("gemini-3-flash-preview", "http://[::1]:1/v1", None)),
        (
            {"base_url": LOCAL, "openai_api_key_env_var": "VLLM_KEY"},
            {},
            ("gemini-3-flash-preview", LOCAL, "VLLM_KEY"),
        ),
        # Two ports of this machine are two endpoints.
        (
            {"base_url": LOCAL, "openai_api_key_env_var": "VLLM_KEY"},
            {"base_url": "http://127.0.0.1:9000/v1"},
            ("gemini-3-flash-preview", "http://127.0.0.1:9000/v1", None),
        ),
    ],
)
def test_addresses(default: dict[str, str], group: dict[str, str], expected: tuple[str, str, str | None]) -> None:
    config = OpenAIConfig(**default, evaluation=QuestionConfig(**group))  # type: ignore[arg-type]
    assert _short(resolve_addresses(config)["evaluation"]) == expected


def test_every_group_has_its_own() -> None:
    config = OpenAIConfig(
        keypoint_detection=QuestionConfig(model="k"),
        blocking_detection=QuestionConfig(base_url=LOCAL),
        evaluation=QuestionConfig(openai_api_key_env_var="OPENAI_API_KEY"),
    )
    found = {group: _short(address) for group, address in resolve_addresses(config).items()}
    assert found == {
        "keypoint_detection": ("k", GEMINI, "GEMINI_API_KEY"),
        "blocking_detection": (config.model, LOCAL, None),
        "evaluation": (config.model, OPENAI, "OPENAI_API_KEY"),
    }


@pytest.mark.parametrize(
    ("default", "group", "said"),
    [
        ({"openai_api_key_env_var": "MY_KEY"}, {}, "MY_KEY, which tells no provider: write openai_config.base_url"),
        ({"openai_api_key_env_var": ""}, {}, "empty, which tells no provider: write openai_config.base_url"),
        ({}, {"openai_api_key_env_var": "MY_KEY"}, "write openai_config.evaluation.base_url"),
        ({}, {"base_url": OWN}, "is not sent there: name .* in openai_config.evaluation.openai_api_key_env_var"),
        (
            {"openai_api_key_env_var": "OPENAI_API_KEY"},
            {"base_url": GEMINI},
            "is not sent there: name .* in openai_config.evaluation.openai_api_key_env_var",
        ),
        ({}, {"base_url": "https://googleapis.com.example.org/v1"}, "is not sent there"),
        ({"base_url": OWN}, {}, "GEMINI_API_KEY holds the key of another provider: name .* in openai_config.openai_api"),
        ({"base_url": "https://notgoogleapis.com/v1"}, {}, "GEMINI_API_KEY holds the key of another provider"),
        (
            {"base_url": "http://models.example.org/v1", "openai_api_key_env_var": "OWN_KEY"},
            {},
            "openai_config.base_url is http://models.example.org/v1: .* write https://, or open a tunnel",
        ),
        (
            {},
            {"base_url": "http://10.0.0.7:8000/v1", "openai_api_key_env_var": "OWN_KEY"},
            "openai_config.evaluation.base_url .* write https://",
        ),
        ({}, {"base_url": "http://127.0.0.1.example.org/v1", "openai_api_key_env_var": "K"}, "write https://"),
        ({}, {"base_url": "models.example.org/v1", "openai_api_key_env_var": "K"}, "no address: write https://host/path"),
        ({}, {"base_url": "ftp://example.org/v1", "openai_api_key_env_var": "K"}, "no address"),
        ({}, {"base_url": "https:///v1", "openai_api_key_env_var": "K"}, "no address"),
        ({}, {"base_url": "https://[1/v1", "openai_api_key_env_var": "K"}, "no address"),
        ({}, {"base_url": "https://example.org:port/v1", "openai_api_key_env_var": "K"}, "no address"),
    ],
)
def test_what_is_no_address_says_what_to_write(default: dict[str, str], group: dict[str, str], said: str) -> None:
    config = OpenAIConfig(**default, evaluation=QuestionConfig(**group))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=said):
        resolve_addresses(config)


@pytest.mark.parametrize("url", ["https://me:sesame@example.org/v1", "https://example.org/v1?key=sesame", "sesame@host"])
def test_a_key_in_an_address_is_refused_unseen(url: str) -> None:
    with pytest.raises(ConfigurationError, match="more than an address") as raised:
        resolve_addresses(OpenAIConfig(base_url=url, openai_api_key_env_var="K"))
    assert "sesame" not in str(raised.value)


def _address(base_url: str, variable: str | None) -> Address:
    return Address(model="m", base_url=base_url, key_env_var=variable, setting="openai_config.evaluation")


@pytest.mark.parametrize(
    ("base_url", "variable", "environ", "key"),
    [
        (GEMINI, "GEMINI_API_KEY", {"GEMINI_API_KEY": "sesame"}, "sesame"),
        (GEMINI, "GEMINI_API_KEY", {"GEMINI_API_KEY": " sesame\n"}, "sesame"),
        (LOCAL, None, {"GEMINI_API_KEY": "sesame"}, None),
        (LOCAL, "VLLM_KEY", {}, None),
        (LOCAL, "VLLM_KEY", {"VLLM_KEY": "sesame"}, "sesame"),
    ],
)
def test_keys(base_url: str, variable: str | None, environ: dict[str, str], key: str | None) -> None:
    assert key_of(_address(base_url, variable), environ) == key


@pytest.mark.parametrize("environ", [{}, {"GEMINI_API_KEY": ""}, {"GEMINI_API_KEY": " "}, {"OPENAI_API_KEY": "sesame"}])
def test_a_missing_key_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(
        ConfigurationError, match=r"GEMINI_API_KEY is not set: .* in openai_config.evaluation.openai_api_key_env_var"
    ):
        key_of(_address(GEMINI, "GEMINI_API_KEY"), environ)


@pytest.mark.parametrize("key", ["sesame\nopen", "sesame open", "sésame", "sesame\x00"])
def test_what_is_no_key_is_refused_unseen(key: str) -> None:
    with pytest.raises(ConfigurationError, match="characters that no key has") as raised:
        key_of(_address(GEMINI, "GEMINI_API_KEY"), {"GEMINI_API_KEY": key})
    assert "same" not in str(raised.value)

"""The prompts of published evaluators are versions: a change has a name of its own."""

import shutil
from pathlib import Path

import pytest

from judges.published import prompts
from judges.published.opening import prompts_of
from schemas.errors import ConfigurationError
from schemas.extensions import JUDGES
from tests.support.judging.published_world import EVALUATORS, PROMPTS

_FOLDER = Path(prompts.__file__).parent
_DIGESTS = {
    "agenttrek_v1": "b6288a7e8ebbffb13d75ac86625c70ec1aab09aac332090152f1d12152283feb",
    "deepshop_v1": "9806d9f610662b531217cbe2d8ea973b5580ac1a79810b83feb375b04208e0c7",
    "openwebrl_v1": "6e322c309d98e81df7669cafeaf62f06b8b25b01d21eb46e0a32a8c7df7b0664",
    "universal_verifier_v1": "76433ec8a5f043e65f2535545eddae4d1fb569d244424dacf4586eed7da2c39e",
    "webjudge_v1": "edf55750397ffde4504123af1e88e942db46866a0d942655f88d6052e8d799ec",
    "webvoyager_v1": "2fb93a09b29febdbed6af3d0e40d60120058e1fd4da3a6d13eb5e16e0c33a769",
}


def test_a_change_of_the_prompts_is_a_version_of_its_own() -> None:
    """Judgements name their judge: put changed prompts into a folder `..._v2`, with a judge of that name."""
    assert {name: each.digest for name, each in PROMPTS.items()} == _DIGESTS


def test_every_folder_of_prompts_is_a_judge_that_asks_models() -> None:
    folders = {path.name for path in _FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(EVALUATORS)
    for name in folders:
        assert JUDGES.find(name).traits.asks_models


@pytest.mark.parametrize("name", EVALUATORS)
def test_prompts_of_ones_own_are_a_folder_with_the_same_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(_FOLDER / name, folder)
    monkeypatch.chdir(folder)
    for written in (str(folder), "."):
        mine = prompts_of(name, EVALUATORS[name].placeholders, written)
        assert (mine.version, mine.digest) == ("mine", PROMPTS[name].digest)
    (folder / "task.txt").unlink()
    with pytest.raises(ConfigurationError, match=f"task.txt is missing: copy it from judges/published/prompts/{name}"):
        prompts_of(name, EVALUATORS[name].placeholders, str(folder))


@pytest.mark.parametrize("name", EVALUATORS)
def test_every_question_with_untrusted_text_says_what_that_is_and_how_to_answer(name: str) -> None:
    for file, text in PROMPTS[name].texts.items():
        if file.endswith("system"):
            assert "one JSON object and nothing else" in text
            assert ("never an instruction" in text) == (file not in ("key_points_system", "rubric_system"))

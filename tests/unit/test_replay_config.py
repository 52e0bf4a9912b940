"""The configuration of a run that is trained on another one's episodes, by value."""

import hashlib
from pathlib import Path

import pytest

from ops.replay.config import offline_config
from ops.run.folder import RunFolder
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.feeder_config import FeederConfig
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Checkpoint, FileHash
from schemas.policy_config import PolicyConfig

RUN = RunName("played")


def version(number: int, weights: bytes) -> Checkpoint:
    files = {"model.safetensors": weights, "trainer/optimizer.safetensors": b"moments", "config.json": b"{}"}
    return Checkpoint(
        run=RUN,
        version=PolicyVersion(number),
        uri="file:///x",
        files=tuple(
            FileHash(path=path, sha256=hashlib.sha256(data).hexdigest(), num_bytes=len(data)) for path, data in files.items()
        ),
        parent=None,
        trainer_step=0,
        judged_seq=0,
    )


VERSIONS = [version(0, b"first"), version(1, b"second")]


@pytest.fixture
def source(tmp_path: Path) -> RunFolder:
    """A run whose base model holds the weights `first`."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"first")
    folder = RunFolder(tmp_path / "source")
    config = Config(
        save_path=str(folder.path),
        policy_config=PolicyConfig(base_model=str(model), temperature=0.5),
        bus_config=BusConfig(run=RUN, guest_runs=(RunName("demonstrations"),)),
        feeder_config=FeederConfig(mode="async", evaluate_first=True, evaluate_last=True, eval_every=2),
    )
    folder.create(config, needed_bytes=0)
    return folder


def test_everything_but_the_mode_is_as_it_was_played(source: RunFolder, tmp_path: Path) -> None:
    config = offline_config(source.config, RunFolder(tmp_path / "new"), VERSIONS, ["algorithm_config.learning_rate=0.5"])
    assert config.feeder_config.mode == "offline"
    assert not config.feeder_config.tests
    assert config.policy_config == source.load().policy_config
    assert config.algorithm_config.learning_rate == 0.5
    assert config.save_path == str(tmp_path / "new")
    assert (config.bus_config.run, config.bus_config.guest_runs) == ("played-offline", ())
    assert config.bus_config.episodes_max_age_s == config.bus_config.results_max_age_s == 0


def test_the_version_of_the_base_model_is_found_by_its_weights(source: RunFolder, tmp_path: Path) -> None:
    def stored_version(*overrides: str) -> int:
        config = offline_config(source.config, RunFolder(tmp_path / "new"), VERSIONS, overrides)
        return config.trainer_config.stored_version

    assert stored_version() == 0
    other = tmp_path / "other"
    other.mkdir()
    assert stored_version(f"policy_config.base_model={other}") == -1, "a folder without weights"
    (other / "model.safetensors").write_bytes(b"second")
    assert stored_version(f"policy_config.base_model={other}") == 1
    (other / "model.safetensors").write_bytes(b"third")
    assert stored_version(f"policy_config.base_model={other}") == -1
    assert stored_version("trainer_config.stored_version=1") == 1, "what a person says counts"


def test_another_mode_is_refused(source: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="trains offline"):
        offline_config(source.config, RunFolder(tmp_path / "new"), (), ["feeder_config.mode=sync"])


def test_a_data_set_that_was_counted_is_remembered(source: RunFolder, tmp_path: Path) -> None:
    target = RunFolder(tmp_path / "new")
    begun = Config(
        bus_config=BusConfig(run=RunName("played-offline")), feeder_config=FeederConfig(mode="offline", num_stored=17)
    )
    target.create(begun, needed_bytes=0)
    assert offline_config(source.config, target, (), ()).feeder_config.num_stored == 17


def test_the_folder_of_another_run_is_left_alone(source: RunFolder) -> None:
    before = source.config.read_bytes()
    with pytest.raises(ConfigurationError, match="holds run played, which is no offline training"):
        offline_config(source.config, source, VERSIONS, [])
    assert source.config.read_bytes() == before


def test_the_trainer_goes_by_the_rubric_whose_judgements_are_taken(source: RunFolder, tmp_path: Path) -> None:
    def rubrics(*overrides: str, rubric: str | None = None) -> tuple[str, ...]:
        config = offline_config(source.config, RunFolder(tmp_path / "new"), VERSIONS, overrides, rubric=rubric)
        return config.bus_config.rubrics

    assert rubrics(rubric="strict") == ("strict",), "whatever the source was trained by"
    assert rubrics("judge_config.judge=rubric_v1") == ("rubric_v1",), "judged again, by the run's own judge"
    assert rubrics("judge_config.judge=rubric_v1", rubric="strict") == ("strict",), "nobody judges"
    assert rubrics("bus_config.rubrics=[strict,other]", rubric="strict") == ("strict", "other")
    with pytest.raises(ConfigurationError, match=r"the trainer would go by other, .* those of strict"):
        rubrics("bus_config.rubrics=[other,strict]", rubric="strict")


def test_a_folder_goes_on_with_the_rubric_that_it_was_begun_with(source: RunFolder, tmp_path: Path) -> None:
    target = RunFolder(tmp_path / "new")
    target.create(offline_config(source.config, target, (), (), rubric="strict"), needed_bytes=0)
    assert offline_config(source.config, target, (), (), rubric="strict").bus_config.rubrics == ("strict",)
    with pytest.raises(ConfigurationError, match="begun with the judgements of strict, and these are those of environment"):
        offline_config(source.config, target, (), (), rubric="environment")

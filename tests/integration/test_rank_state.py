"""The optimizer's state between jobs of different sizes: what two ranks wrote, one goes on with, and the other way round."""

import json
import os
import resource
import signal
import sys
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from schemas.errors import TrainerError
from schemas.objective_config import ObjectiveConfig
from tests.builders import RUN
from tests.support.agents import tiny_models
from tests.support.training.lora_runs import samples_of
from tests.support.training.rank_processes import ended_ranks, run_ranks
from tests.support.training.trainer_world import narrow, settings
from trainer.engine import folders
from trainer.engine.held_state import Stretch, open_saved
from trainer.engine.ranks import Ranks
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import TrainEngine, dismiss_ranks, follow, open_engine
from trainer.imitation import cloning_items
from trainer.model.layers import gathered_layers, trained_parameters, without_values
from trainer.model.loading import load_model
from trainer.versions.checkpoints import TrainerState, write_checkpoint

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:.*torch.distributed.*is deprecated:FutureWarning"),
]
STATE = TrainerState(version=1, num_trajectories=0, num_updates=0)
KINDS = ("1-bfloat16", "2-float32", "3-bfloat16")
"""ZeRO stages and what the model is in."""
WITH_CRITIC = replace(settings(3), objective=ObjectiveConfig(adv_estimator="gae", loss_type="clipped"))
"""All ranks take part in writing its weights too, behind what one of them could not write."""
_PROGRAM = """
import sys
from pathlib import Path
from tests.integration import test_rank_state
test_rank_state.{}(*map(Path, sys.argv[1:]))
"""


def chosen(kind: str) -> EngineSettings:
    stage, dtype = kind.split("-")
    return narrow(settings(int(stage))) if dtype == "bfloat16" else settings(int(stage))


def on_ranks(base: Path, work: Path) -> None:
    """What each of two processes runs, by kind: goes on with what one wrote, after having written the same once more."""
    for kind in KINDS:
        if os.environ["RANK"] != "0":
            follow(settings=chosen(kind))
            continue
        samples = samples_of(base, 5)
        (alone,) = (work / kind / "alone").glob("v*")
        with open_engine(alone, settings=chosen(kind), resume=alone) as engine:
            folder, _ = write_checkpoint(work / kind / "together", base=base, engine=engine.files(), state=STATE)
            losses = [engine.train(cloning_items(samples)).loss for _ in range(2)]
        dismiss_ranks()
        print("WROTE", kind, json.dumps([str(folder), losses]))


@dataclass(frozen=True)
class Written:
    """What one process wrote, and then two who went on with it."""

    alone: Path
    losses: list[float]
    """Of two more steps of the one."""
    parameters: dict[str, torch.Tensor]
    """By name, without values."""
    together: Path
    losses_together: list[float]
    """Of two more steps of the two."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """By kind; one pair of processes for all."""
    work = tmp_path_factory.mktemp("ranks")
    base = tiny_models.build(work / "model", seed=1)
    samples = samples_of(base, 5)
    ones = {}
    for kind in KINDS:
        with open_engine(base, settings=chosen(kind)) as engine:
            for _ in range(2):
                engine.train(cloning_items(samples))
            alone, _ = write_checkpoint(work / kind / "alone", base=base, engine=engine.files(), state=STATE)
            parameters = {name: without_values(parameter) for name, parameter in trained_parameters(engine.model)}
            ones[kind] = alone, [engine.train(cloning_items(samples)).loss for _ in range(2)], parameters
    output = run_ranks(_PROGRAM.format("on_ranks"), base, work)
    said = [line.split(maxsplit=2) for line in output.splitlines() if line.startswith("WROTE ")]
    twos = {kind: json.loads(rest) for _, kind, rest in said}
    return {kind: Written(*ones[kind], Path(twos[kind][0]), twos[kind][1]) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_go_on_with_what_one_wrote_and_the_other_way_round(written: dict[str, Written], kind: str) -> None:
    run = written[kind]
    assert run.losses_together == pytest.approx(run.losses, rel=1e-2 if "bf" in kind else 1e-4)
    assert len(list((run.together / "trainer").glob("optimizer-rank*.safetensors"))) == 2
    assert (run.together / "model.safetensors").read_bytes() == (run.alone / "model.safetensors").read_bytes()
    keys = ["exp_avg", "exp_avg_sq", *(["master"] if "bf" in kind else [])]
    for key in keys:
        for name, like in run.parameters.items():
            assert torch.equal(value_in(run.together, key, name, like), value_in(run.alone, key, name, like)), (key, name)
    samples = samples_of(run.alone, 5)
    with open_engine(run.together, settings=chosen(kind), resume=run.together) as engine:
        assert [engine.train(cloning_items(samples)).loss for _ in range(2)] == run.losses


def value_in(folder: Path, key: str, name: str, like: torch.Tensor) -> torch.Tensor:
    """All of a parameter's."""
    held = Stretch(0, torch.empty(like.numel()), lambda: None)
    with open_saved(folder / "trainer", "optimizer") as saved:
        assert saved.progress.num_updates == 2
        saved.fill(key, name, held)
    return held.values


def test_under_zero_3_a_model_is_divided_as_it_is_read(tmp_path: Path) -> None:
    base = tiny_models.build(tmp_path / "model", seed=1)
    Ranks()
    model = load_model(base, settings(3).deepspeed)
    assert {parameter.numel() for parameter in model.parameters()} == {0}, "each is whole while it is used, and only then"
    read = {name: weight for layer in gathered_layers(model, keeps=True) for name, weight in layer.items()}
    stored = load_file(base / "model.safetensors")
    assert read.keys() == stored.keys()
    assert all(torch.equal(read[name], stored[name]) for name in read)


def without_room(base: Path, work: Path) -> None:
    """Rank 1 cannot write what it holds."""
    if os.environ["RANK"] != "0":
        sys.dont_write_bytecode = True  # what is imported from now on would be cached cut off
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
        follow(settings=WITH_CRITIC)
        return
    samples = samples_of(base, 3)
    with open_engine(base, settings=WITH_CRITIC) as engine:
        engine.train(cloning_items(samples))
        try:
            write_checkpoint(work, base=base, engine=engine.files(), state=STATE)
        except TrainerError as error:
            print("REFUSED", error)
        engine.train(cloning_items(samples))
        print("LEFT", *work.glob("v*"))
    dismiss_ranks()


def test_a_rank_without_room_is_told_of_and_leaves_nobody_waiting(tmp_path: Path) -> None:
    base = tiny_models.build(tmp_path / "model", seed=1)
    output = run_ranks(_PROGRAM.format("without_room"), base, tmp_path / "out")
    assert f"REFUSED the checkpoint cannot be written to {tmp_path / 'out'} (File too large)" in output
    assert "LEFT\n" in output


def on_its_own_disk(base: Path, work: Path) -> None:
    """Rank 1 sees nothing that rank 0 has, or writes."""
    if os.environ["RANK"] != "0":
        os.environ["LOCAL_RANK"] = "0"
        folders._sees = lambda *_: False
        follow(settings=settings(3))
        return
    samples = samples_of(base, 5)
    with open_engine(base, settings=settings(3)) as engine:
        for _ in range(2):
            engine.train(cloning_items(samples))
        folder, _ = write_checkpoint(work, base=base, engine=engine.files(), state=STATE)
        expected = [engine.train(cloning_items(samples)).loss for _ in range(2)]
    with open_engine(folder, settings=settings(3), resume=folder, base=base) as engine:
        assert [engine.train(cloning_items(samples)).loss for _ in range(2)] == expected
    dismiss_ranks()
    print("FILES", *sorted(file.name for file in (folder / "trainer").iterdir()))


def test_nodes_need_not_share_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tiny_models.build(tmp_path / "model", seed=1)
    (tmp_path / "copies").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "copies"))
    output = run_ranks(_PROGRAM.format("on_its_own_disk"), base, tmp_path / "out")
    assert "FILES optimizer-rank00000.safetensors optimizer-rank00001.safetensors state.msgpack\n" in output
    assert not list((tmp_path / "copies").iterdir()), "copies go when the engine is closed"


def on_two_nodes(folder: Path, work: Path) -> None:
    """Ranks 0 and 1 are on one node; rank 2 is on another, which sees nothing that the first has."""
    rank = os.environ["RANK"]
    tempfile.tempdir = str(work / "here")
    if rank == "2":
        os.environ["LOCAL_RANK"] = "0"
        tempfile.tempdir = str(work / "there")
        folders._sees = lambda *_: False
    with closing(folders.Folders(Ranks(), RUN)) as found:
        assert (found.here(folder) / "model").read_text() == "weights"
        with found.written(work / "version") as mine:
            (mine / "trainer" / rank).write_text(f"held by {rank}")


def test_a_rank_beside_rank_0_uses_its_disk_where_another_node_has_its_own(tmp_path: Path) -> None:
    for name in ("model", "version/trainer", "here", "there"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "model" / "model").write_text("weights")
    run_ranks(_PROGRAM.format("on_two_nodes"), tmp_path / "model", tmp_path, num_ranks=3)
    written = {file.name: file.read_text() for file in (tmp_path / "version" / "trainer").iterdir()}
    assert written == {rank: f"held by {rank}" for rank in "012"}
    assert not [*(tmp_path / "here").iterdir(), *(tmp_path / "there").iterdir()], "copies are of nodes that do not see it"


def lost_on_its_own_disk(base: Path, how: Path) -> None:
    """Rank 1 has its copy when it ends."""
    if os.environ["RANK"] == "0":
        tempfile.tempdir = str(base)
        with suppress(RuntimeError), open_engine(base, settings=settings(3)) as engine:
            engine.train(cloning_items(samples_of(base, 5)))
        return

    def end(self: TrainEngine) -> None:
        assert list(Path(tempfile.gettempdir()).rglob("model.safetensors"))
        if how.name == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("no room")

    os.environ["LOCAL_RANK"] = "0"
    folders._sees = lambda *_: False
    TrainEngine.follow = end  # type: ignore[method-assign]
    follow(settings=settings(3))


@pytest.mark.parametrize(("how", "code"), [("killed", -signal.SIGKILL), ("failed", 1)])
def test_a_rank_that_does_not_end_in_order_leaves_no_copy_behind_its_next(
    how: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tiny_models.build(tmp_path / "model", seed=1)
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setenv("TMPDIR", str(copies))
    _, ended = ended_ranks(_PROGRAM.format("lost_on_its_own_disk"), base, Path(how))
    assert ended.code == code, ended.output
    assert bool(list(copies.iterdir())) == (how == "killed")
    run_ranks(_PROGRAM.format("on_its_own_disk"), base, tmp_path / "out")
    assert not list(copies.iterdir())

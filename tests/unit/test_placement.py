"""What a machine runs of a run, and who sees which GPU."""

from pathlib import Path

import pytest

from ops.cli import main
from ops.commands.share_arguments import gpu_lists
from ops.config.loading import load_config
from ops.launch.node_file import Share
from ops.machine.placement import Wanted, shares_of, specs_of, visible_gpus
from ops.processes.role_process import typed
from schemas.errors import ConfigurationError

VLLM, SIMULATED = load_config("update_online", []), load_config("simulation", [])
EIGHT = tuple(map(str, range(8)))


def gpus(shares: tuple[Share, ...]) -> dict[str, tuple[str, ...]]:
    return {share.role.value: share.gpus for share in shares if share.gpus}


def counts(shares: tuple[Share, ...]) -> dict[str, int]:
    return {share.role.value: share.count for share in shares}


@pytest.mark.parametrize(
    ("mode", "roles"),
    [
        ("async", ["feeder", "browser", "policy", "judge", "trainer"]),
        ("sync", ["feeder", "browser", "policy", "judge", "trainer"]),
        ("rollout", ["feeder", "browser", "policy", "judge"]),
        ("eval", ["feeder", "browser", "policy", "judge"]),
        ("offline", ["trainer"]),
    ],
)
def test_a_mode_has_its_roles(mode: str, roles: list[str]) -> None:
    config = load_config("simulation", [f"feeder_config.mode={mode}"])
    assert counts(shares_of(config, Wanted(), ())) == dict.fromkeys(roles, 1)
    assert list(counts(shares_of(config, Wanted(archives=True), ()))) == sorted(
        [*roles, "archiver"], key=["feeder", "browser", "policy", "judge", "archiver", "trainer"].index
    )


@pytest.mark.parametrize(
    ("there", "wanted", "policy", "trainer"),
    [
        ((), Wanted(), (), ()),
        (("0",), Wanted(), ("0",), ("0",)),
        (("0", "1"), Wanted(), ("1",), ("0",)),
        (EIGHT, Wanted(), ("2", "3", "4", "5", "6", "7"), ("0", "1")),
        (EIGHT, Wanted(num_policies=2), ("2", "3"), ("0", "1")),
        (EIGHT, Wanted(trainer_gpus=("4", "5", "6", "7")), ("0", "1", "2", "3"), ("4", "5", "6", "7")),
        (EIGHT, Wanted(policy_gpus=("0,1", "2,3")), ("0,1", "2,3"), ("4",)),
        ((), Wanted(policy_gpus=("0",), trainer_gpus=("1",)), ("0",), ("1",)),
    ],
)
def test_gpus_are_divided(there: tuple[str, ...], wanted: Wanted, policy: tuple[str, ...], trainer: tuple[str, ...]) -> None:
    found = shares_of(VLLM, wanted, there)
    assert gpus(found) == {role: those for role, those in (("policy", policy), ("trainer", trainer)) if those}
    assert counts(found)["policy"] == (len(policy) or 1)


@pytest.mark.parametrize(
    ("there", "wanted", "policy", "trainer"),
    [
        (EIGHT, Wanted(), ("2,3", "4,5", "6,7"), ("0", "1")),
        (EIGHT[:4], Wanted(), ("2,3",), ("0", "1")),
        (EIGHT, Wanted(num_policies=1), ("2,3",), ("0", "1")),
        (EIGHT, Wanted(policy_gpus=("0,1", "2,3")), ("0,1", "2,3"), ("4", "5")),
        ((), Wanted(), (), ()),
    ],
)
def test_a_model_in_two_parts_has_two_gpus_a_policy(
    there: tuple[str, ...], wanted: Wanted, policy: tuple[str, ...], trainer: tuple[str, ...]
) -> None:
    found = shares_of(load_config("update_online", ["policy_config.vllm_args={tensor_parallel_size: 2}"]), wanted, there)
    assert gpus(found) == {role: those for role, those in (("policy", policy), ("trainer", trainer)) if those}


@pytest.mark.parametrize(
    ("there", "wanted", "said"),
    [
        (EIGHT, Wanted(num_policies=2), "2 policies want 4 GPUs each, and 4 are left of 8"),
        (EIGHT[:2], Wanted(), "a policy wants 4 GPUs, and 2 are left of 2"),
        (EIGHT, Wanted(policy_gpus=("0,1",)), "a policy process that sees 0,1 has too few GPUs for the 4 parts"),
    ],
)
def test_too_few_gpus_for_a_models_parts_are_said(there: tuple[str, ...], wanted: Wanted, said: str) -> None:
    parts = "policy_config.vllm_args={tensor_parallel_size: 2, pipeline_parallel_size: 2}"
    with pytest.raises(ConfigurationError, match=said):
        shares_of(load_config("update_online", [parts]), wanted, there)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(policy_gpus=("0", "0")), "--policy-gpus names GPU 0 twice: write each once, as in 0,1 for a process each"),
        (Wanted(policy_gpus=("2,2",)), "--policy-gpus names GPU 2 twice"),
        (Wanted(policy_gpus=("0,1", "1,2")), "--policy-gpus names GPU 1 twice"),
        (Wanted(trainer_gpus=gpu_lists("6,06")), "--trainer-gpus names GPU 6 twice"),
    ],
)
def test_two_processes_of_a_role_on_one_gpu_are_refused(wanted: Wanted, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        shares_of(VLLM, wanted, EIGHT)


def test_devices_that_cuda_is_told_twice_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for told in ("0,0", "GPU-8f,1,GPU-8f"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told)
        with pytest.raises(ConfigurationError, match=f"CUDA_VISIBLE_DEVICES='{told}' names .* twice, and CUDA then shows no"):
            visible_gpus()


def test_who_does_not_train_samples_on_all_of_them_and_simulations_on_none() -> None:
    rollout = load_config("update_online", ["feeder_config.mode=rollout"])
    assert gpus(shares_of(rollout, Wanted(), EIGHT)) == {"policy": EIGHT}
    assert gpus(shares_of(SIMULATED, Wanted(num_policies=3), EIGHT)) == {}
    assert counts(shares_of(SIMULATED, Wanted(num_policies=3), EIGHT))["policy"] == 3


def test_more_policies_than_gpus_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="7 policies want a GPU each, and 6 are left of 8"):
        shares_of(VLLM, Wanted(num_policies=7), EIGHT)


def test_processes_are_what_a_person_would_type() -> None:
    shares = shares_of(VLLM, Wanted(num_browsers=2, trainer_gpus=("6", "7"), policy_gpus=("0,1",)), EIGHT)
    specs = {spec.name: spec for spec in specs_of(shares, ["--run-dir", "/r", "policy_config.top_k=5"])}
    assert list(specs) == ["feeder-1", "browser-1", "browser-2", "policy-1", "judge-1", "trainer-1"]
    said = ("--run-dir", "/r", "policy_config.top_k=5")
    assert typed(specs["browser-2"].argv) == ("millrace", "browser", "--name", "browser-2", *said)
    assert typed(specs["trainer-1"].argv) == ("millrace", "trainer", "--name", "trainer-1", *said)
    assert specs["trainer-1"].argv[2:6] == ("-m", "ops.launch.ranks", "2", "--")
    assert specs["trainer-1"].env == {"CUDA_VISIBLE_DEVICES": "6,7"}
    assert specs["policy-1"].env == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert specs["judge-1"].env == {}


@pytest.mark.parametrize(("text", "lists"), [("0", ("0",)), ("0,1", ("0", "1")), ("0+1,2+3", ("0,1", "2,3"))])
def test_gpus_are_written_as_lists(text: str, lists: tuple[str, ...]) -> None:
    assert gpu_lists(text) == lists


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("", ()),
        ("3", ("3",)),
        ("4, 5", ("4", "5")),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("2,-1,3", ("2",)),
        ("GPU-8f,MIG-3a", ("GPU-8f", "MIG-3a")),
    ],
)
def test_cuda_is_told_what_it_may_see(said: str, seen: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", said)
    assert visible_gpus() == seen


def test_a_dry_run_prints_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    folder = tmp_path / "run"
    assert main(["run", "update_online", "--run-dir", str(folder), "--browsers", "2", "--dry-run"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for words in ("server-1", "millrace browser --name browser-2", "millrace policy --name policy-3", "millrace trainer"):
        assert words in printed
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "write CONFIG for a new run, or --run-dir for one that goes on"),
        (["simulation", "--policy-gpus", "one"], "'one' names no GPUs: write 0,1,2, or 0+1,2+3 for two a process"),
        (["simulation", "--browsers", "0"], "'0' is not a whole number of 1 or more"),
    ],
)
def test_what_cannot_be_run_is_said(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", *arguments])
    assert said in capsys.readouterr().err


def test_a_recipe_that_is_none_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "simulatoin", "--run-dir", str(tmp_path / "run")]) == 78
    assert "simulatoin" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

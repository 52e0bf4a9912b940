"""What the mismatch gate makes of a policy in bf16, and of policies that hold other weights than the trainer.

    python -m benchmarks.precision [--seeds 10] [--work DIR]

A run is one seed of one shape: a tiny Qwen3-VL of 2 or of 16 layers that imitates drawn pages until its answers are sure, as
version 0, and six optimizer steps later as version 1. A real vLLM in bf16 answers 32 pages with each; the trainer's engine,
in float32 and in bf16 on DeepSpeed, computes the log-probabilities of the same tokens, and the gate decides by its defaults.
Then the policy is given weights that are wrong in one way each, while the trainer goes on with the right ones.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from typing import Final

import msgspec
import numpy as np
from matplotlib.axes import Axes

from benchmarks.precision_sampler import Answers, Job
from benchmarks.report import OURS, RESULTS, TARGET, Report
from benchmarks.wrong_models import CHANGES, changed, with_head_of
from ops.gpu_check.drawn_pages import build_model, build_samples, demonstrations, sampled
from ops.quickstart.tiny_model import TinyShape
from schemas.algorithm_config import AlgorithmConfig
from schemas.errors import MismatchExceeded
from schemas.ids import PolicyVersion
from schemas.objective_config import ObjectiveConfig
from schemas.trainer_config import TrainerConfig
from trainer.engine.deepspeed_config import read_deepspeed_config
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import TrainEngine, open_engine
from trainer.imitation import imitate
from trainer.mismatch import Mismatch, check_mismatch, measured_mismatch
from trainer.samples import Sample

_SHAPES: Final = {2: TinyShape(), 16: TinyShape(num_layers=16)}
_DEEPSPEED = Path(__file__).parents[1] / "ops/config/deepspeed/ds_config_cpu_zero1.json"
_PRECISIONS = ("float32", "bfloat16")
_NUM_PAGES, _BATCH = 640, 32
_UPDATES = (40, 6)
"""Before version 0, and from there to version 1."""
_NUM_ANSWERS = TrainerConfig().mismatch_samples
_RIGHT = "right"
_TOLD_TEMPERATURE = 1.0
_WRONG_SEEDS = 2
"""Of each shape, that are made wrong in every way."""


@dataclass(frozen=True)
class Row:
    policy: str
    layers: int
    trainer: str
    gates: int
    closed: int
    k3_median: float
    k3_least: float
    k3_most: float
    far_most: float
    mean_most: float


@dataclass(frozen=True)
class Gate:
    """One look of the trainer at a policy's answers."""

    policy: str
    layers: int
    trainer: str
    mismatch: Mismatch
    closed: bool


@dataclass(frozen=True)
class Compared:
    """A job of the sampler, and the trainer's model that its answers are compared with."""

    policy: str
    job: Job
    trainer: Path
    among: str = ""
    """The name of a job that three of four answers are taken of."""


def settings(deepspeed: Path) -> EngineSettings:
    algorithm = AlgorithmConfig(
        per_device_train_batch_size=_BATCH, gradient_accumulation_steps=1, learning_rate=2e-3, warmup_steps=0
    )
    return EngineSettings(read_deepspeed_config(deepspeed), algorithm, TrainerConfig(torch_threads=1), ObjectiveConfig())


def train(folder: Path, seed: int, shape: TinyShape) -> tuple[Path, Path]:
    """Folders of version 0 and of version 1."""
    build_model(folder / "untrained", seed=seed, shape=shape)
    samples = build_samples(folder / "untrained", demonstrations(_NUM_PAGES, seed=seed))
    rng = np.random.default_rng(seed)
    versions = []
    with open_engine(folder / "untrained", settings=settings(_DEEPSPEED)) as engine:
        for number, updates in enumerate(_UPDATES):
            order = (rng.choice(len(samples), _BATCH, replace=False) for _ in range(updates))
            for _ in imitate(engine, samples, order=order, seed=seed):
                pass
            versions.append(_saved(engine, folder, number))
    return versions[0], versions[1]


def _saved(engine: TrainEngine, folder: Path, number: int) -> Path:
    into = copytree(folder / "untrained", folder / f"v{number}")
    engine.files(whole=False).write(into)
    return into


def plan(work: Path, layers: int, versions: Sequence[tuple[Path, Path]]) -> Iterator[Compared]:
    """`versions`: of each seed."""

    def job(name: str, folder: Path, seed: int, temperature: float = 1.0) -> Job:
        return Job(f"{layers} {seed} {name}", str(folder), 1000 + seed, _NUM_ANSWERS, temperature)

    for seed, folders in enumerate(versions):
        for number, folder in enumerate(folders):
            yield Compared(_RIGHT, job(f"v{number}", folder, seed), folder)
    for seed, (old, new) in enumerate(versions[:_WRONG_SEEDS]):
        into = work / f"wrong-{layers}-{seed}"
        for name, change in CHANGES.items():
            yield Compared(name, job(name, changed(new, into / name.replace(" ", "-"), change), seed), new)
        dropped = job("first layer dropped", into / "first-layer-dropped", seed)
        yield Compared("a quarter, first layer dropped", dropped, new, among=job("v1", new, seed).name)
        yield Compared(
            "output weights as at the start",
            job("head", with_head_of(new, into / "head", old.with_name("untrained")), seed),
            new,
        )
        yield Compared("the version before", job("v0", old, seed), new)
        yield Compared("another run's", job("other", versions[1 - seed][1], seed), new)
        yield Compared("temperature 0.5, not told", job("cold", new, seed, 0.5), new)


def sample(work: Path, layers: int, compared: Sequence[Compared]) -> dict[str, Answers]:
    """By the jobs' names; every job once."""
    jobs = {each.job.name: each.job for each in compared}
    asked, told = work / f"jobs-{layers}", work / f"answers-{layers}"
    asked.write_bytes(b"\n".join(msgspec.json.encode(job) for job in jobs.values()))
    subprocess.run([sys.executable, "-m", "benchmarks.precision_sampler", str(asked), str(told)], check=True)
    answers = [msgspec.json.decode(line, type=Answers) for line in told.read_bytes().splitlines()]
    return {each.job.name: each for each in answers}


def gates(work: Path, layers: int, compared: Sequence[Compared], answers: Mapping[str, Answers]) -> Iterator[Gate]:
    narrow = work / "ds_config_cpu_bf16.json"
    narrow.write_text(json.dumps({**json.loads(_DEEPSPEED.read_text(encoding="utf-8")), "bf16": {"enabled": True}}))
    by_trainer: dict[Path, list[Compared]] = defaultdict(list)
    for each in compared:
        by_trainer[each.trainer].append(each)
    for precision, deepspeed in zip(_PRECISIONS, (_DEEPSPEED, narrow), strict=True):
        for folder, comparisons in by_trainer.items():
            with open_engine(folder, settings=settings(deepspeed)) as engine:
                for each in comparisons:
                    samples = _samples(folder, each, answers)
                    found = measured_mismatch(samples, engine.completion_logprobs(samples))
                    yield Gate(each.policy, layers, precision, found, _closed(found))


def _samples(folder: Path, each: Compared, answers: Mapping[str, Answers]) -> list[Sample]:
    said = list(answers[each.job.name].generations)
    if each.among:
        right = answers[each.among].generations
        said = [one if index % 4 == 0 else right[index] for index, one in enumerate(said)]
    told = [replace(one, temperature=_TOLD_TEMPERATURE) for one in said]
    return sampled(folder, demonstrations(_NUM_ANSWERS, seed=each.job.seed), told)


def _closed(found: Mismatch) -> bool:
    try:
        check_mismatch(found, trainer=TrainerConfig(), version=PolicyVersion(0), num_samples=_NUM_ANSWERS)
    except MismatchExceeded:
        return True
    return False


def rows(seen: Sequence[Gate]) -> list[Row]:
    sorts: dict[tuple[str, int, str], list[Gate]] = defaultdict(list)
    for gate in seen:
        sorts[gate.policy, gate.layers, gate.trainer].append(gate)
    return [
        Row(
            *sort,
            gates=len(found),
            closed=sum(gate.closed for gate in found),
            k3_median=float(np.median([gate.mismatch.k3 for gate in found])),
            k3_least=min(gate.mismatch.k3 for gate in found),
            k3_most=max(gate.mismatch.k3 for gate in found),
            far_most=max(gate.mismatch.far_share for gate in found),
            mean_most=max(gate.mismatch.mean for gate in found),
        )
        for sort, found in sorts.items()
    ]


def draw(axes: Axes, seen: Sequence[Gate]) -> None:
    names = list(dict.fromkeys(gate.policy for gate in seen))
    for gate in seen:
        colour = OURS if gate.policy == _RIGHT else TARGET
        marker = "o" if gate.trainer == "float32" else "x"
        axes.plot(max(gate.mismatch.k3, 1e-7), names.index(gate.policy), marker, color=colour, markersize=4)
    axes.axvline(TrainerConfig().max_mismatch_k3, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("k3, nats; the line is where the run stops (o: trainer in float32, x: in bf16)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="of each of the two shapes")
    parser.add_argument("--work", type=Path, help="folder for models; left out: a temporary one")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.seeds < _WRONG_SEEDS:
        parser.error(f"--seeds is {options.seeds}: write {_WRONG_SEEDS} or more")
    seen: list[Gate] = []
    with tempfile.TemporaryDirectory() as temporary:
        work: Path = options.work or Path(temporary)
        for layers, shape in _SHAPES.items():
            versions = []
            for seed in range(options.seeds):
                versions.append(train(work / f"{layers}-{seed}", seed, shape))
                print(f"{layers} layers: trained {seed + 1} of {options.seeds}", flush=True)
            compared = list(plan(work, layers, versions))
            answers = sample(work, layers, compared)
            seen.extend(gates(work, layers, compared, answers))
    right = [gate for gate in seen if gate.policy == _RIGHT]
    wrong = [gate for gate in seen if gate.policy != _RIGHT]
    Report(
        name="precision",
        title="The mismatch gate with a policy in bf16",
        rows=rows(seen),
        notes=(
            f"false alarms: {sum(gate.closed for gate in right)} of {len(right)} gates of {2 * options.seeds} runs; "
            f"wrong policies caught: {sum(gate.closed for gate in wrong)} of {len(wrong)}",
            "bounds: "
            + ", ".join(f"{name} {getattr(TrainerConfig(), name):g}" for name in ("max_mismatch_k3", "max_mismatch_far")),
        ),
        draw=lambda axes: draw(axes, seen),
    ).publish(options.out)


if __name__ == "__main__":
    main()

"""Shows a plan: what each GPU holds, the host, the disk, what does not fit, and how fast it would go."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ops.planning.memory import Need, cached_tokens, rank_gpu, serving_gpu, version_disk
from ops.planning.plan import Plan, gib
from ops.planning.problems import Problem
from ops.planning.rates import Rates

_DIFFERENCES = {"1e-6": 0.026, "5e-6": 0.081, "2e-5": 0.182}
"""Share of the bytes that policies fetch where versions travel as differences, by the learning rate: measured
(benchmarks/results/weight_differences.json)."""


def shown(made: Plan, problems: Sequence[Problem], speed: Rates | None) -> Iterator[RenderableType]:
    """What a terminal shows."""
    size, gpu = made.size, made.machine.gpu
    yield Text(f"{size.num_parameters / 1e9:.2f} billion parameters; each GPU is {gpu.name} with {gib(gpu.memory)}")
    if made.training is not None:
        ranks = made.training.num_ranks
        title = f"a training rank's GPU ({ranks} {'rank' if ranks == 1 else 'ranks'}, ZeRO-{made.training.stage})"
        yield _table(title, rank_gpu(made.training), gpu.memory)
    if made.serving is not None:
        policies = f"{made.num_policies} {'policy' if made.num_policies == 1 else 'policies'}"
        title = f"a policy's GPU ({policies} of {made.serving.num_parts} each)"
        yield _table(title, serving_gpu(made.serving), made.serving.memory)
        yield Text(
            f"its cache holds {cached_tokens(made.serving):,} tokens: {made.num_sequences:,} answers at once of "
            f"{made.config.policy_config.max_model_len:,} tokens each"
        )
    yield _table("the host", made.host, made.machine.host_memory)
    if made.training is not None:
        yield _table("the files of one version", version_disk(made.training), 0.0)
        yield Text(f"kept on disk: {gib(made.kept_on_disk)}; {_fetched(made)}")
    for problem in problems:
        yield Text(f"does not fit: {problem.sentence}", style="bold red")
        for remedy in problem.remedies:
            yield Text(f"  would fit: {remedy}")
        if not problem.remedies:
            yield Text("  no single setting helps: more or larger GPUs, or a smaller model")
    if not problems:
        yield Text("it fits", style="green")
    if speed is not None:
        yield _rates(speed)
        yield Text(f"what holds it up: {speed.bottleneck}")


def _rates(speed: Rates) -> Table:
    title = f"how fast, where nothing has been measured yet (prompts of {speed.prompt_tokens:,} tokens)"
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, min_width=44)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("steps", f"{speed.steps_s:.1f} a second")
    table.add_row("  that full policies would do", f"{speed.policies_steps_s:.1f} a second")
    if speed.cores_steps_s:
        table.add_row("  that the cores have time for", f"{speed.cores_steps_s:.1f} a second")
    table.add_row("an answer", f"{speed.answer_s:.1f} s")
    table.add_section()
    table.add_row(f"collecting a version's {speed.steps:,.0f} steps", f"{speed.collecting_s:,.0f} s")
    table.add_row("training on them", f"{speed.training_s:,.0f} s")
    table.add_row("until it is served", f"{speed.refresh_s:.1f} s")
    turns = "in turns" if speed.in_turns else "side by side"
    table.add_section()
    table.add_row(f"versions, {turns}", f"{speed.versions_an_hour:.1f} an hour")
    return table


def _fetched(made: Plan) -> str:
    assert made.training is not None
    served = version_disk(made.training).parts["for policies"]
    shares = ", ".join(f"{gib(served * share)} at {rate}" for rate, share in _DIFFERENCES.items())
    return f"each policy takes {gib(served)} a version, or as differences (bus_config.weights=bus) {shares}"


def _table(title: str, need: Need, whole: float) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, min_width=44)
    table.add_column()
    table.add_column(justify="right")
    for name, num_bytes in need.parts.items():
        if num_bytes:
            table.add_row(name, gib(num_bytes))
    table.add_section()
    table.add_row("together", gib(need.total) + (f" of {gib(whole)}" if whole else ""))
    return table


def figures(made: Plan, problems: Sequence[Problem], speed: Rates | None) -> dict[str, object]:
    """The same for programs; sizes in bytes, times in seconds."""
    found: dict[str, object] = {"num_parameters": made.size.num_parameters, "gpu_bytes": made.machine.gpu.memory}
    if made.training is not None:
        found["training_rank"] = rank_gpu(made.training).parts
        found["version"] = version_disk(made.training).parts
        found["kept_on_disk"] = made.kept_on_disk
    if made.serving is not None:
        found["policy"] = serving_gpu(made.serving).parts
        found["cached_tokens"] = cached_tokens(made.serving)
    said = [{"problem": problem.sentence, "would_fit": problem.remedies} for problem in problems]
    if speed is not None:
        found["rates"] = {
            "steps_a_second": speed.steps_s,
            "steps_a_second_of_full_policies": speed.policies_steps_s,
            "steps_a_second_of_the_cores": speed.cores_steps_s or None,
            "prompt_tokens": speed.prompt_tokens,
            "answer": speed.answer_s,
            "steps_a_version": speed.steps,
            "collecting": speed.collecting_s,
            "training": speed.training_s,
            "until_served": speed.refresh_s,
            "versions_an_hour": speed.versions_an_hour,
            "bottleneck": speed.bottleneck,
        }
    return {**found, "host": made.host.parts, "problems": said}

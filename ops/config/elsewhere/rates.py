"""Schedules of the learning rate: shares and iterations there, optimizer steps here. Pure."""

from ops.config.elsewhere.conversions import only_where
from ops.config.elsewhere.measures import ITERATIONS, optimizer_steps
from ops.config.elsewhere.row import Convert, Kind, Said, Several
from ops.config.elsewhere.written import Written, number, whole


def _total_steps(written: Written) -> int | None:
    iterations = written.number(*ITERATIONS)
    return int(iterations) * optimizer_steps(written) if iterations and iterations > 0 else None


def warmup_share(value: object, written: Written) -> object:
    """Of a share of all training."""
    share, total = number(value), _total_steps(written)
    if share == 0:
        return 0
    if total is None:
        return Said(
            Kind.INSTEAD, f"write algorithm_config.warmup_steps: {share:g} of all optimizer steps, whose number is not said"
        )
    return Several({"algorithm_config.warmup_steps": round(share * total)}, f"{share:g} of {total} optimizer steps")


def warmup_iterations(value: object, written: Written) -> object:
    """Of training steps, which take several optimizer steps each."""
    found, each = whole(value), optimizer_steps(written)
    if found < 0:
        return Said(Kind.NOTHING, "the share of warm-up counts")
    return Several({"algorithm_config.warmup_steps": found * each}, f"{found} iterations of {each} optimizer steps")


def schedule(names: dict[str, str]) -> Convert:
    """Their names of schedules; those that fall do so until the end of the run."""

    def convert(value: object, written: Written) -> object:
        name = names.get(str(value).lower())
        if name is None:
            return Said(
                Kind.INSTEAD, "write constant_with_warmup, constant, linear or cosine for algorithm_config.lr_scheduler_type"
            )
        if name not in ("linear", "cosine"):
            return name
        total = written.number("actor.lr_sched.lr_decay_iters") or _total_steps(written)
        if not total:
            return Said(Kind.INSTEAD, f"write {name} with algorithm_config.lr_scheduler_steps: how long it falls is not said")
        return Several(
            {"algorithm_config.lr_scheduler_type": name, "algorithm_config.lr_scheduler_steps": int(total)},
            f"until optimizer step {int(total)}",
        )

    return convert


def of_falling(convert: Convert) -> Convert:
    """RLinf's, of a rate that falls."""
    return only_where(
        lambda written: written.get("actor.lr_sched.lr_decay_style") not in (None, "constant"),
        "the rate does not fall",
        convert,
    )

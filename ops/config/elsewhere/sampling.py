"""How answers are sampled, in training and in evaluation. Pure."""

from ops.config.elsewhere.row import Convert, Kind, Said
from ops.config.elsewhere.written import Written, number, truth


def greedy_unless_sampled(value: object, _: Written) -> object:
    return Said(Kind.SAME, "answers are sampled") if truth(value) else 0.0


def eval_greedy(value: object, _: Written) -> object:
    return Said(Kind.SAME, "the temperature counts") if truth(value) else 0.0


def eval_temperature(value: object, written: Written) -> object:
    return number(value) if written.true("actor_rollout_ref.rollout.val_kwargs.do_sample") else 0.0


def as_in_training(key: str, ours: str) -> Convert:
    """What evaluation cannot have of its own."""

    def convert(value: object, written: Written) -> object:
        if written.number(key) == number(value):
            return Said(Kind.SAME, "evaluation samples as training does, but for the temperature")
        return Said(Kind.INSTEAD, f"leave it out: evaluation samples with {ours} too; `millrace eval` may have another")

    return convert

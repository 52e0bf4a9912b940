"""Turns their values into ours, where a key is the same but its values are not. Pure."""

from collections.abc import Callable, Mapping

from ops.config.elsewhere.row import IN_FILE, Convert, Kind, Said, Several
from ops.config.elsewhere.written import Unfit, Written, listed, number, text, truth, whole
from schemas.lora_config import LANGUAGE_LAYERS

_ENDINGS = (".parquet", ".json", ".arrow", ".csv")
KL = {"kl": "kl", "k1": "kl", "abs": "abs", "mse": "mse", "k2": "mse", "low_var_kl": "low_var_kl", "k3": "low_var_kl"}
KL_TYPES = KL | {f"{theirs}+": f"{here}+" for theirs, here in KL.items() if here != "mse"} | {"mse+": "mse", "k2+": "mse"}
TRAJECTORIES = {
    "token-mean": "token-mean",
    "seq-mean-token-sum": "traj-mean-token-sum",
    "seq-mean-token-mean": "traj-mean-token-mean",
    "seq-mean-token-sum-norm": "traj-mean-token-sum-norm",
}
"""A sequence there is a whole episode; here it is one step of it."""
_PRECISIONS = {
    **dict.fromkeys(("bf16", "bfloat16", "bf16-mixed"), "bf16"),
    **dict.fromkeys(("fp16", "float16", "16", "half"), "fp16"),
    **dict.fromkeys(("fp32", "float32", "32"), ""),
}
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "": "float32"}
_ANY_NUMBER = 1e6
_REPORTED = ("wandb", "tensorboard")


def choice(names: Mapping[str, str], otherwise: str) -> Convert:
    """By name; `otherwise` says what to write for another one."""

    def convert(value: object, _: Written) -> object:
        found = names.get(text(value))
        return Said(Kind.INSTEAD, otherwise) if found is None else found

    return convert


def only_where(applies: Callable[[Written], bool], why: str, convert: Convert) -> Convert:
    """It has no effect elsewhere."""

    def converted(value: object, written: Written) -> object:
        return convert(value, written) if applies(written) else Said(Kind.NOTHING, why)

    return converted


def only_with(switch: str, convert: Convert) -> Convert:
    """Where another key is true, or has any value but false."""
    return only_where(lambda written: _is_on(written.get(switch)), f"{switch} is off there", convert)


def _is_on(value: object) -> bool:
    try:
        return truth(value or False)
    except Unfit:
        return True


def as_number(value: object, _: Written) -> float:
    return number(value)


def as_whole(value: object, _: Written) -> int:
    return whole(value)


def as_truth(value: object, _: Written) -> bool:
    return truth(value)


def as_text(value: object, _: Written) -> str:
    return text(value)


def either(on: object, off: object) -> Convert:
    """What true and false stand for."""
    return lambda value, _: on if truth(value) else off


evaluates = either("eval", Said(Kind.SAME, "it trains"))


def batches(value: object, _: Written) -> float:
    """How many an iteration may play; 0: any number."""
    found = number(value)
    return max(1.0, found) if found > 0 else _ANY_NUMBER


def at_least_two(value: object, _: Written) -> int:
    return max(2, whole(value))


def off_below_one(value: object, _: Written) -> int:
    """-1 and 0 switch it off there; 0 does so here."""
    return max(0, whole(value))


def top_k(value: object, _: Written) -> int:
    """0 and numbers beyond any vocabulary stand for all tokens, as -1 does here."""
    found = whole(value)
    return found if 0 < found < 100_000 else -1


def task_file(value: object, _: Written) -> object:
    """The first file, with the ending of task files."""
    files = [text(each) for each in listed(value)]
    if not files:
        return Said(Kind.INSTEAD, "write the name of a task file")
    ending = next((ending for ending in _ENDINGS if files[0].endswith(ending)), "")
    return files[0].removesuffix(ending) + (".jsonl" if ending else "")


def loggers(value: object, _: Written) -> object:
    """The terminal and metrics.jsonl have all figures anyway."""
    found = [name for name in map(text, listed(value)) if name in _REPORTED]
    return found or "none"


def first_moment(value: object, _: Written) -> object:
    if number(value) == 0.9:
        return Said(Kind.SAME, "AdamW's first moment is 0.9 always")
    return Said(Kind.INSTEAD, "leave it out: AdamW's first moment is 0.9 always, and algorithm_config.adam_beta2 the second's")


def adam_betas(value: object, _: Written) -> object:
    first, second = (number(each) for each in (listed(value) * 2)[:2])
    words = "" if first == 0.9 else f"the first moment's is 0.9 here, and was {first:g}"
    return Several({"algorithm_config.adam_beta2": second}, words)


def zero_stage(names: Mapping[str, int], otherwise: str) -> Convert:
    def convert(value: object, _: Written) -> object:
        stage = names.get(text(value).lower())
        return Said(Kind.INSTEAD, otherwise) if stage is None else Several({f"{IN_FILE}zero_optimization.stage": stage})

    return convert


def offload(*parts: str) -> Convert:
    """True puts these parts of training into the host's memory."""

    def convert(value: object, _: Written) -> object:
        if not truth(value):
            return Said(Kind.SAME, "nothing is offloaded where the DeepSpeed file does not say so")
        return Several({f"{IN_FILE}zero_optimization.{part}": True for part in parts})

    return convert


def checkpointing(value: object, _: Written) -> object:
    return Several({f"{IN_FILE}activation_checkpointing": truth(value)})


def precision(value: object, _: Written) -> object:
    """Of training; of fp16 policies have to be told too."""
    found = _PRECISIONS.get(text(value).lower())
    if found is None:
        return Said(Kind.INSTEAD, "write bf16, fp16 or neither into the DeepSpeed file")
    dtype = {"policy_config.dtype": "float16"} if found == "fp16" else {}
    return Several({f"{IN_FILE}precision": found, **dtype}, "policies answer in it too" if dtype else "")


def dtype(value: object, _: Written) -> object:
    """Of the policy's engine."""
    found = _PRECISIONS.get(text(value).lower())
    return "auto" if found is None else _DTYPES[found]


def engine(value: object, _: Written) -> object:
    name = text(value).lower()
    if name in ("vllm", "async_vllm", "async_verl"):
        return "vllm"
    return Said(Kind.INSTEAD, f"leave it out: {name} is not here, vLLM answers (or openai, any compatible endpoint)")


def vllm_argument(name: str) -> Convert:
    return lambda value, _: Several({f"policy_config.vllm_args.{name}": value})


def adapter_layers(value: object, _: Written) -> object:
    """PEFT's names; `all-linear` stands for all there are."""
    names = [text(each) for each in listed(value)]
    if names == ["all-linear"]:
        return Several(
            {"trainer_config.lora.targets": list(LANGUAGE_LAYERS)}, "the language model's; the encoder's can be named"
        )
    return names


def with_adapters(convert: Convert, *ranks: str) -> Convert:
    return only_where(lambda written: bool(written.number(*ranks)), "no adapters are trained: the rank is 0", convert)


LORA_RANKS = ("actor_rollout_ref.model.lora_rank", "actor.model.lora_rank", "actor_rollout_ref.model.lora.rank")

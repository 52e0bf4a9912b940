"""WebGym's keys: the same names here, except those of `ops.config.webgym_keys`, which its tree is loaded by."""

from ops.config.elsewhere.common import COMMON
from ops.config.elsewhere.row import Kind, Program, Row, Said, Several
from ops.config.elsewhere.row import ours as key
from ops.config.elsewhere.written import Written
from ops.config.webgym_keys import NOT_SET, SAME_AS, SPLIT, WITHOUT_EFFECT, WithoutEffect

_CAPS = "easy medium hard"
_POOLS = "metadata navigate allocate release screenshot ac_tree page_metadata execute"
_QUESTION = "model openai_api_key_env_var base_url"
_SAME_NAME = {
    "": "save_path data_path",
    "model_config.": "model_type prompt_version",
    "policy_config.": "base_model checkpoint_path max_new_tokens temperature top_p top_k min_p",
    "context_config.": "interaction_mode",
    "env_config.": "operation_timeout evaluation_workers completion_threshold completion_grace_period instance_lifetime_max "
    "task_timeout_minutes server_size verbose use_rich_actree max_retries train_tasks test_tasks train_tasks_rollout_size "
    "test_tasks_rollout_size test_tasks_repeat_times train_tasks_sampler difficulty_ratio deduplicate_across_iterations "
    "train_difficulty_max_steps test_difficulty_max_steps",
    "env_config.http_pools.": _POOLS,
    "env_config.train_difficulty_max_steps.": _CAPS,
    "env_config.test_difficulty_max_steps.": _CAPS,
    "openai_config.": "openai_api_key_env_var base_url",
    "openai_config.keypoint_detection.": _QUESTION,
    "openai_config.blocking_detection.": _QUESTION,
    "openai_config.evaluation.": _QUESTION,
    "log_config.": "run_name wandb_key_env_var entity_name",
    "algorithm_config.": "positive_samples_to_train recency_bias_power cutoff_len per_device_train_batch_size "
    "gradient_accumulation_steps learning_rate max_grad_norm weight_decay num_train_epochs warmup_steps lr_scheduler_type "
    "val_split_ratio filter_same_screenshot deepspeed_config_filename report_to",
}


def _same_name(name: str) -> Row:
    left_open = NOT_SET.get(name, ())

    def convert(value: object, _: Written) -> object:
        if any(isinstance(value, bool) == isinstance(each, bool) and value == each for each in left_open):
            return Said(Kind.NOTHING, "it stands for nothing, so it is as if it were left out")
        return value

    return Row(name, Kind.OURS, (name,), "the same name", convert)


def _judges(value: object, _: Written) -> object:
    return Several({"openai_config.model": value, "judge_config.judge": "rubric_v1"}, "the same name; `rubric_v1` asks it")


def _without_effect(name: str, entry: WithoutEffect) -> Row:
    return Row(name, Kind.SAME, (), entry.why, usual=entry.published, otherwise=entry.instead)


def _mode(value: object, written: Written) -> object:
    if value == "test":
        return "eval"
    if value == "train":
        learns = any(name.startswith("algorithm_config.") for name in written.values)
        return Said(Kind.SAME, "it collects and trains") if learns else "rollout"
    return Said(Kind.INSTEAD, "write train or test")


WEBGYM = Program(
    "WebGym",
    "webgym",
    (
        *COMMON,
        key("openai_config.model", "openai_config.model", "the same name; `judge_config.judge` is then `rubric_v1`", _judges),
        *(_same_name(group + name) for group, names in _SAME_NAME.items() for name in names.split()),
        *(key(theirs, here, "under either name") for theirs, here in SAME_AS.items()),
        key(SPLIT, "feeder_config.mode", "`test` is `eval`; `train` is `rollout` without any `algorithm_config`", _mode),
        *(_without_effect(name, entry) for name, entry in WITHOUT_EFFECT.items()),
    ),
    recipe="default",
)

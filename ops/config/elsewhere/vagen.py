"""VAGEN's own keys; the others it has from verl, in its version of 2025 with defaults of their own."""

from dataclasses import replace

from ops.config.elsewhere import measures as count
from ops.config.elsewhere.conversions import as_number, as_truth, as_whole, only_where
from ops.config.elsewhere.row import Program, Row, extended, instead, nothing, ours, same, under
from ops.config.elsewhere.verl import VERL

_R = "rollout_manager."
_MASK = "what the environment says never counts, in advantages and in losses"
_NO_SERVICE = "environments are pages in browser workers, which are started on any node (docs/launching.md)"
_TASKS = "write a task file: `millrace tasks frozen-lake` and `millrace tasks sokoban` make some (docs/grid_worlds.md)"

_OWN: tuple[Row, ...] = (
    ours("algorithm.high_level_gamma", "objective_config.high_level_gamma", "from turn to turn", as_number),
    ours(
        "data.max_trajectory_length",
        count.LENGTH,
        "of one step's prompt and answer; screenshots take more tokens than drawn boards",
        count.length,
    ),
    *nothing(("data.image_key", "data.truncation"), "prompts are made of screenshots, and leave their oldest rounds out"),
    ours(_R + "max_turns", count.CAPS, "for each difficulty, in training and evaluation", count.all_caps),
    ours(_R + "window_size", "context_config.num_rounds", "older rounds become one line of text each", as_whole),
    ours(_R + "use_multi_turn_reward", "objective_config.use_multi_turn_reward", "of `bi_level_gae` and its kin", as_truth),
    same(_R + "use_loss_mask", True, _MASK, f"leave it out: {_MASK}"),
    same(_R + "use_gae_mask", True, _MASK, f"leave it out: {_MASK}"),
    *nothing(under(_R[:-1], "special_token_for_loss_mask truncation max_trajectory_length n_gpus_per_node"), _MASK),
    ours(_R + "n_trajectory", "objective_config.group_size", "episodes of a task", count.group),
    *nothing(under(_R[:-1], "use_service base_url"), _NO_SERVICE),
    *instead(
        _R + "timeout", "write env_config.operation_timeout for one operation, env_config.task_timeout_minutes for an episode"
    ),
    *instead(_R + "max_workers", "write env_config.server_size for the episodes of one browser worker"),
    *instead(_R + "mini_batch_size", "write feeder_config.max_concurrent for the episodes that are played at once"),
    ours(
        "trainer.val_generations_to_log_to_wandb",
        "log_config.table_episodes",
        "episodes on a page of samples",
        count.at_least_one,
    ),
    *nothing("critic.use_reward_mask", _MASK),
    *instead(("envs", "*.env_name"), _TASKS),
    *nothing(
        under("trainer", "skip_pad_tokens replace_image_tokens_for_logging concat_multi_turn log_image.* max_pending"),
        "each step of an episode is a sample of its own, and its screenshots are in the streams",
    ),
    *instead("filter.*", "write drop or refill for objective_config.dynamic_sampling: groups whose rewards are all equal"),
    *nothing("huggingface_hub.*", "`millrace export-model` writes a model's folder"),
    *instead(
        "*.env_config.render_mode", "leave it out: pages are seen as screenshots; context_config.accessibility_tree adds text"
    ),
    *instead("*.env_config.prompt_format", "write vanilla or complete for model_config.prompt_version"),
    *instead("*.env_config.*", "write it into the website of each task, as docs/grid_worlds.md lists it for the suites here"),
    *instead("*.train_size", "write so many seeds: `millrace tasks frozen-lake --seeds 0:10000` (env_config.train_tasks)"),
    *instead(
        "*.test_size", "write so many other seeds: `millrace tasks frozen-lake --seeds 10000:10512` (env_config.test_tasks)"
    ),
    *instead(
        "use_state_reward", "write a judge of your own for judge_config.judge; its step rewards count by use_multi_turn_reward"
    ),
    *nothing("server.*", _NO_SERVICE),
)
_DEFAULTS: dict[str, object] = {
    count.SEVERAL: True,
    "data.train_batch_size": 128,
    "data.max_prompt_length": 9000,
    "data.max_response_length": 8000,
}
"""Of its `vagen_multiturn`."""
_OF_2025: tuple[Row, ...] = (
    ours(
        "algorithm.kl_ctrl.kl_coef",
        "objective_config.kl_reward_coef",
        "only where `use_kl_loss` is false",
        only_where(
            lambda written: not written.true("actor_rollout_ref.actor.use_kl_loss"),
            "actor_rollout_ref.actor.use_kl_loss is true: the divergence is in the loss",
            as_number,
        ),
        default=0.001,
    ),
    *nothing("data.max_prompt_length", "the whole counts: `data.max_trajectory_length`"),
    ours("data.max_response_length", "policy_config.max_new_tokens", "of one step's answer", as_whole, default=512),
    ours(_R + "max_turns", count.CAPS, "for each difficulty, in training and evaluation", count.all_caps, default=5),
    ours(_R + "window_size", "context_config.num_rounds", "older rounds become one line of text each", as_whole, default=5),
    ours("actor_rollout_ref.actor.entropy_coeff", "objective_config.entropy_coeff", "", as_number, default=0.001),
)
_VAGEN = Program("VAGEN", "vagen", _OWN, VERL.settings)
VAGEN = replace(
    extended(_VAGEN, VERL, _DEFAULTS),
    older=extended(replace(_VAGEN, rows=_OF_2025), extended(_VAGEN, VERL)),
    older_group=_R[:-1],
)

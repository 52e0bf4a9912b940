"""RLinf's keys of robots and their simulators: in `env.train`, `env.eval`, and by themselves in a simulator's own file."""

from ops.config.elsewhere import measures as count
from ops.config.elsewhere.conversions import as_number, as_whole
from ops.config.elsewhere.row import Row, instead, nothing, ours, under

_ROBOT = "robots and their simulators are not here: an environment is a page"
_M = "actor.model."
_STREAMS = "roles meet on the run's streams (docs/messages.md)"
_ENDS = "an episode ends when it is done or its steps are used up, and the next begins"
_TASK = "each task has its own beginning: its website, with a seed where its suite draws"
_SUITE = "write a task file of one of the suites (`millrace tasks`), or a suite of your own (browser_config.suites)"
_VIDEO = "`millrace view` shows every episode's screenshots"
_VIEWPORT = "write browser_config.viewport_width and viewport_height"


def _in(group: str, split: str) -> tuple[Row, ...]:
    """Of a simulator."""
    prefix = f"{group}." if group else ""
    return (
        *instead((prefix + "env_type", prefix + "task_suite_name"), _SUITE),
        *(
            (
                ours(
                    prefix + "total_num_envs",
                    "env_config.server_size",
                    "also the episodes of an iteration",
                    count.environments,
                ),
            )
            if split == "train"
            else nothing(prefix + "total_num_envs", "training and evaluation share the slots (browser_config.eval_share)")
        ),
        ours(
            prefix + "max_episode_steps", f"env_config.{split}_difficulty_max_steps", "for each difficulty", count.caps(split)
        ),
        *nothing(
            under(group, "auto_reset ignore_terminations max_steps_per_rollout_epoch is_eval")
            if group
            else ("auto_reset", "ignore_terminations", "max_steps_per_rollout_epoch", "is_eval"),
            _ENDS,
        ),
        *nothing((prefix + "use_fixed_reset_state_ids", prefix + "use_ordered_reset_state_ids"), _TASK),
        *instead(
            prefix + "use_rel_reward",
            "write true for objective_config.use_multi_turn_reward: a page's reward counts by its rises",
        ),
        ours(prefix + "reward_coef", "objective_config.reward_scale", "factor of rewards", as_number),
        *(
            (
                ours(prefix + "seed", "feeder_config.seed", "", as_whole),
                ours(prefix + "group_size", "objective_config.group_size", "", count.group),
            )
            if split == "train"
            else (
                *nothing(prefix + "seed", _TASK),
                *nothing(prefix + "group_size", "each test task is played env_config.test_tasks_repeat_times times"),
            )
        ),
        *(
            (ours(prefix + "rollout_epoch", "env_config.train_tasks_rollout_size", "times the simulators", count.rounds),)
            if split == "train"
            else (
                ours(
                    prefix + "rollout_epoch", "env_config.test_tasks_repeat_times", "times that each task is played", as_whole
                ),
            )
        ),
        *nothing(
            tuple(prefix + f"video_cfg.{name}" for name in ("save_video", "info_on_video", "video_base_dir", "*")), _VIDEO
        ),
        *instead(tuple(prefix + f"init_params.{name}" for name in ("camera_heights", "camera_widths")), _VIEWPORT),
        *nothing(prefix + "init_params.*", _ROBOT),
        *(
            nothing(prefix + "*", _ROBOT)
            if group
            else nothing(("reset_gripper_open", "wrap_obs_mode", "sim_config.*"), _ROBOT)
        ),
    )


SIMULATORS: tuple[Row, ...] = (
    *nothing("env.group_name", "workers are named by role, host and process"),
    *nothing(under("env", "channel.name channel.queue_name channel.queue_size channel.*"), _STREAMS),
    *nothing("env.enable_offload", "browsers need no GPU"),
    *_in("env.train", "train"),
    *_in("env.eval", "test"),
    *_in("", "train"),
    *nothing(
        under(
            _M[:-1],
            "action_dim num_action_chunks use_proprio unnorm_key center_crop policy_setup image_size num_images_in_input "
            "value_type num_steps proprio_dim implement_version use_film max_prompt_length do_sample "
            "val_micro_batch_size add_value_head value_head_type",
        ),
        _ROBOT,
    ),
    *nothing(tuple(f"{_M}{name}.*" for name in ("openpi", "rl_head_config", "obs_converter", "openvla", "gr00t")), _ROBOT),
    *nothing(("env.*", "rollout.unnorm_key", "actor.num_steps", "rollout.expert_model.*"), _ROBOT),
)

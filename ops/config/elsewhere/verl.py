"""verl's keys (its PPO trainer), which AgentFly and VAGEN have too."""

from ops.config.elsewhere import divergence
from ops.config.elsewhere import measures as count
from ops.config.elsewhere import objective as aim
from ops.config.elsewhere.common import COMMON
from ops.config.elsewhere.conversions import (
    KL_TYPES,
    as_number,
    as_text,
    as_truth,
    as_whole,
    at_least_two,
    batches,
    choice,
    either,
    evaluates,
    loggers,
    off_below_one,
    only_with,
    task_file,
)
from ops.config.elsewhere.row import Kind, Program, Row, Setting, instead, nothing, ours, same
from ops.config.elsewhere.verl_actor import ACTOR
from ops.config.elsewhere.verl_critic import CRITIC
from ops.config.elsewhere.verl_rollout import ROLLOUT

_A, _C = "algorithm.", "algorithm.rollout_correction."
_JUDGE = (
    "write the name of a judge for judge_config.judge: environment_v1, rubric_v1 (asks a model), or ./file.py:name of your own"
)
_OWN_JUDGE = "write ./file.py:name for judge_config.judge (docs/judges.md)"
_MODEL_JUDGE = "write rubric_v1 for judge_config.judge, and the model's endpoint into openai_config"
_RESUME = "write the checkpoint for policy_config.checkpoint_path, from which a new run begins"
_TASKS = "tasks are JSON lines with their website and their check (docs/curriculum.md)"
_NO_RAY = "there is no Ray: workers join the run's NATS server (docs/launching.md)"
_FOLDER = "checkpoints are in the run's folder, save_path"
_PROMPT = "an observation is a screenshot with its page's words, made by the browser worker"

_OBJECTIVE: tuple[Row, ...] = (
    ours(
        _A + "adv_estimator",
        "objective_config.adv_estimator",
        "`masked_gae` is `gae`: observations never count",
        aim.estimator,
        default="gae",
    ),
    ours(_A + "gamma", "objective_config.gamma", "", as_number),
    ours(_A + "lam", "objective_config.lam", "", as_number),
    ours(_A + "norm_adv_by_std_in_grpo", "objective_config.norm_adv_by_std_in_grpo", "", as_truth),
    ours(
        _A + "use_kl_in_reward",
        "objective_config.kl_reward_coef",
        "false: 0; true: `algorithm.kl_ctrl.kl_coef`",
        divergence.switch(_A + "kl_ctrl.kl_coef"),
    ),
    ours(
        _A + "kl_ctrl.kl_coef",
        "objective_config.kl_reward_coef",
        "only where `algorithm.use_kl_in_reward` is true",
        only_with(_A + "use_kl_in_reward", as_number),
        default=0.001,
    ),
    same(_A + "kl_ctrl.type", "fixed", "a coefficient stays as it is", "leave it out: a coefficient stays as it is here"),
    *nothing((_A + "kl_ctrl.horizon", _A + "kl_ctrl.target_kl"), "a coefficient stays as it is"),
    ours(
        _A + "kl_penalty",
        "objective_config.kl_reward_type",
        "`k1` is `kl`, `k2` is `mse`, `k3` is `low_var_kl`",
        choice(KL_TYPES, "write kl, abs, mse or low_var_kl for objective_config.kl_reward_type"),
    ),
    ours(
        _A + "filter_groups.enable",
        "objective_config.dynamic_sampling",
        "true: `refill`; also `drop`, which replaces nothing",
        either("refill", "off"),
    ),
    ours(
        _A + "filter_groups.max_num_gen_batches",
        "objective_config.max_refill",
        "batches an iteration may play; 0 there: no bound",
        only_with(_A + "filter_groups.enable", batches),
        default=0,
    ),
    *nothing(_A + "filter_groups.metric", "groups are told apart by their rewards"),
    ours(
        _C + "rollout_is",
        ("objective_config.importance_weight_level", "objective_config.loss_type"),
        "with `loss_type` `truncated`",
        aim.importance_weights,
    ),
    ours(
        _C + "rollout_is_threshold",
        "objective_config.importance_weight_cap",
        "only with `rollout_is`",
        only_with(_C + "rollout_is", as_number),
        default=2.0,
    ),
    ours(
        _C + "rollout_rs",
        ("objective_config.rejection_level", "objective_config.rejection_kind"),
        "`seq_mean_k1` is `sequence-mean` and `k1`; the first of several",
        aim.rejection,
    ),
    ours(
        _C + "rollout_rs_threshold",
        ("objective_config.rejection_high", "objective_config.rejection_low"),
        "of `k1` they bound the inverse ratio",
        aim.rejection_bounds,
    ),
    same(
        _C + "bypass_mode",
        False,
        "`clipped` goes by the sampler's log-probabilities, `truncated` and `decoupled` by both",
        "write clipped for objective_config.loss_type, which goes by the sampler's log-probabilities alone",
    ),
    *nothing((_C + "loss_type", _C + "rollout_is_batch_normalize"), "weights stay as they are"),
    *nothing((_A + "use_pf_ppo", _A + "pf_ppo.*"), "episodes count alike; objective_config.pass_rate_weights weighs groups"),
)
_DATA: tuple[Row, ...] = (
    ours("data.train_files", "env_config.train_tasks", _TASKS + "; the first of several files", task_file),
    ours("data.val_files", "env_config.test_tasks", _TASKS + "; the first of several files", task_file),
    ours(
        "data.train_batch_size",
        "env_config.train_tasks_rollout_size",
        "counts prompts there, episodes here: times the group's size",
        count.episodes,
        default=1024,
    ),
    *nothing("data.val_batch_size", "every test task is played; env_config.test_tasks_rollout_size: the first so many"),
    *nothing("data.gen_batch_size", "episodes are played one by one; feeder_config.max_concurrent: how many at once"),
    ours(
        "data.max_prompt_length",
        count.LENGTH,
        "prompt and answer together: plus `data.max_response_length`",
        count.sequence_length("data.max_prompt_length", "data.max_response_length"),
        default=512,
    ),
    ours(
        "data.max_response_length",
        "policy_config.max_new_tokens",
        "of one step's answer, where an episode has one turn",
        count.answer_length,
        default=512,
    ),
    ours("data.seed", "feeder_config.seed", "", as_whole),
    same("data.shuffle", True, "samplers draw tasks in random order", "write a sampler for env_config.train_tasks_sampler"),
    *nothing("data.validation_shuffle", "test tasks are played in the file's order"),
    same("data.train_max_samples", -1, "tasks of the whole file are drawn", "shorten the task file"),
    ours("data.val_max_samples", "env_config.test_tasks_rollout_size", "the first N; -1: all", as_whole),
    *instead(
        ("data.sampler.*", "data.datagen.*"), "write a sampler, or module:name of your own, for env_config.train_tasks_sampler"
    ),
    *nothing(
        "data.prompt_key data.reward_fn_key data.image_key data.video_key data.return_raw_input_ids data.return_raw_chat "
        "data.return_full_prompt data.return_multi_modal_inputs data.apply_chat_template_kwargs.* data.tool_config_path "
        "data.image_patch_size data.custom_cls.* data.tokenizer data.apply_chat_template_kwargs",
        _PROMPT,
    ),
    *nothing(
        "data.truncation data.filter_overlong_prompts data.filter_overlong_prompts_workers",
        "prompts leave their oldest rounds out until an answer fits",
    ),
    *nothing("data.dataloader_num_workers data.use_shm", "the next step's samples are loaded while one trains"),
    *nothing("data.trust_remote_code", "no code of a model's folder is run"),
)


def _overlong(group: str) -> tuple[Row, ...]:
    """DAPO's soft punishment."""
    return (
        *nothing(f"{group}.enable", "`len` counts where it is true"),
        ours(f"{group}.len", "objective_config.overlong_buffer_len", "0: off", aim.overlong(f"{group}.enable")),
        ours(f"{group}.penalty_factor", "objective_config.overlong_penalty_factor", "", as_number),
        *nothing(f"{group}.log", "figures have it"),
    )


_REWARD: tuple[Row, ...] = (
    *_overlong("reward_model.overlong_buffer"),
    *_overlong("reward_model.reward_kwargs.overlong_buffer_cfg"),
    *nothing("reward_model.reward_kwargs.max_resp_len", "policy_config.max_new_tokens counts"),
    same("reward_model.enable", False, "judges are roles of their own", _JUDGE),
    *instead("reward_model.reward_manager reward_manager.name", _JUDGE),
    *nothing("reward_manager.*", "a judge is named by judge_config.judge"),
    Row("custom_reward_function.path", Kind.INSTEAD, (), _OWN_JUDGE, aim.where("custom_reward_function.path", _OWN_JUDGE)),
    Row("custom_reward_function.*", Kind.INSTEAD, (), _OWN_JUDGE, aim.where("custom_reward_function.path", _OWN_JUDGE)),
    Row("reward_model.model.path", Kind.INSTEAD, (), _MODEL_JUDGE, aim.where("reward_model.enable", _MODEL_JUDGE)),
    *nothing(("reward_model.*", "reward.*"), "a judge's model answers at an endpoint (openai_config)"),
)
_LOOP: tuple[Row, ...] = (
    ours("trainer.total_training_steps", "feeder_config.num_iterations", "one batch each", count.iterations),
    ours(
        "trainer.total_epochs",
        "feeder_config.num_iterations",
        "passes over the tasks: their number divided by the batch; only where total_training_steps is not written",
        count.passes_over_tasks,
    ),
    ours(
        "trainer.save_freq",
        "trainer_config.save_every",
        "these have the optimizer's state; -1: every version is kept anyway for a while (trainer_config.keep_checkpoints)",
        count.iterations_or_usual,
    ),
    ours("trainer.test_freq", "feeder_config.eval_every", "-1: 0, never", off_below_one, default=-1),
    ours("trainer.val_before_train", "feeder_config.evaluate_first", "", as_truth, default=True),
    ours(
        "trainer.val_only",
        "feeder_config.mode",
        "true: `eval`",
        evaluates,
    ),
    ours(
        "trainer.critic_warmup",
        "objective_config.critic.warmup_iterations",
        "",
        as_whole,
    ),
    ours("trainer.project_name", "log_config.project_name", "", as_text),
    ours("trainer.experiment_name", "log_config.run_name", "", as_text),
    ours(
        "trainer.logger",
        "algorithm_config.report_to",
        "`wandb` and `tensorboard`; metrics.jsonl has all figures",
        loggers,
        default=["console", "wandb"],
    ),
    ours(
        "trainer.log_val_generations",
        "log_config.table_episodes",
        "episodes on a page of samples; 0: the usual number",
        count.at_least_one,
    ),
    ours("trainer.default_local_dir", "save_path", "the run's folder", as_text),
    ours(
        "trainer.max_actor_ckpt_to_keep",
        "trainer_config.keep_checkpoints",
        "at least 2",
        at_least_two,
    ),
    *nothing("trainer.max_critic_ckpt_to_keep", "a version has its critic"),
    same(
        "trainer.resume_mode",
        ("auto", "resume_path"),
        "a run goes on from its folder",
        "begin a run in another folder (save_path)",
    ),
    Row("trainer.resume_from_path", Kind.INSTEAD, (), _RESUME, aim.where("trainer.resume_from_path", _RESUME)),
    *nothing("trainer.default_hdfs_dir trainer.del_local_ckpt_after_load trainer.remove_previous_ckpt_in_save", _FOLDER),
    *nothing(
        "trainer.n_gpus_per_node trainer.nnodes",
        "every worker that is started joins: `millrace run` divides this machine's GPUs, docs/launching.md is about several",
    ),
    *nothing("trainer.balance_batch", "micro-batches are dealt to ranks by their tokens"),
    *nothing("trainer.rollout_data_dir trainer.validation_data_dir", "every episode is in the streams (`millrace view`)"),
    *nothing(
        "trainer.device trainer.use_legacy_worker_impl trainer.esi_redundant_time trainer.ray_wait_register_center_timeout",
        _NO_RAY,
    ),
    *nothing("ray_kwargs.* ray_init.* transfer_queue.*", _NO_RAY),
    *nothing("trainer.print_config", "`millrace config` prints the configuration"),
    *nothing("global_profiler.* trainer.profile_steps", "`millrace gpu-check` says where an optimizer step's time goes"),
)
VERL = Program(
    "verl",
    "verl",
    (*COMMON, *_OBJECTIVE, *_DATA, *ACTOR, *ROLLOUT, *CRITIC, *_REWARD, *_LOOP),
    (
        Setting("feeder_config.mode", "sync", "it plays a batch, then trains on it; `async` does not wait"),
        Setting("env_config.completion_threshold", 1.0, "every episode of a batch is waited for"),
        Setting("algorithm_config.val_split_ratio", 0.0, "only cloning holds tasks out"),
    ),
)

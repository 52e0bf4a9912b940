"""Keys of RLinf, AgentFly and VAGEN that have a meaning here, with the key that has it. Whoever writes one is told ours.

AgentFly and VAGEN train with verl and share its names.
"""

from dataclasses import dataclass

from ops.config.webgym_keys import SAME_AS, SPLIT, WITHOUT_EFFECT

_TIMES_GROUP = "counts episodes: prompts times the group's size"
_STEPS_OF_OPTIMIZER = "samples of an optimizer step: this times `per_device_train_batch_size` and the ranks"
_BY_FILE = "in the DeepSpeed file that is named there"
_CAPS = "for each difficulty"
_SAME_THERE = "by the same name there"
_TENSOR_PARALLEL = "`tensor_parallel_size` there"
_TRUNCATED = "with `loss_type=truncated`"


@dataclass(frozen=True, slots=True)
class Name:
    programs: str
    theirs: str
    ours: str
    difference: str = ""


_VERL = "AgentFly, VAGEN"
NAMES = (
    Name(_VERL, "algorithm.adv_estimator", "objective_config.adv_estimator"),
    Name(_VERL, "algorithm.kl_ctrl.kl_coef", "objective_config.kl_reward_coef"),
    Name(_VERL, "algorithm.kl_penalty", "objective_config.kl_reward_type"),
    Name(_VERL, "algorithm.filter_groups.enable", "objective_config.dynamic_sampling", "`refill`, `drop` or `off`"),
    Name(_VERL, "algorithm.rollout_correction.rollout_is", "objective_config.importance_weight_level", _TRUNCATED),
    Name(_VERL, "algorithm.rollout_correction.rollout_is_threshold", "objective_config.importance_weight_cap", _TRUNCATED),
    Name(_VERL, "algorithm.rollout_correction.rollout_rs", "objective_config.rejection_level", "and `rejection_kind`"),
    Name(
        _VERL,
        "algorithm.rollout_correction.rollout_rs_threshold",
        "objective_config.rejection_high",
        "and `rejection_low`; of `k1` they bound the inverse ratio",
    ),
    Name("VAGEN", "algorithm.high_level_gamma", "objective_config.high_level_gamma"),
    Name(_VERL, "data.train_files", "env_config.train_tasks", "task files are JSON lines"),
    Name(_VERL, "data.val_files", "env_config.test_tasks", "task files are JSON lines"),
    Name(_VERL, "data.train_batch_size", "env_config.train_tasks_rollout_size", _TIMES_GROUP),
    Name("AgentFly", "data.val_batch_size", "env_config.test_tasks_rollout_size", "tasks of a whole round; -1: all"),
    Name("VAGEN", "data.max_response_length", "policy_config.max_new_tokens"),
    Name("VAGEN, RLinf", "data.max_prompt_length", "policy_config.max_model_len", "prompt and answer together"),
    Name("VAGEN", "data.max_trajectory_length", "algorithm_config.cutoff_len", "of one step with its prompt"),
    Name("AgentFly", "agent.init_config.model_name_or_path", "policy_config.base_model", "a folder, or a name of the hub"),
    Name("AgentFly", "agent.init_config.max_model_len", "policy_config.max_model_len"),
    Name("AgentFly", "agent.init_config.reward_name", "judge_config.judge"),
    Name("AgentFly", "agent.init_config.tools", "context_config.actions", "`standard` or `extended`"),
    Name("AgentFly", "agent.init_config.backend", "policy_config.engine"),
    Name("AgentFly", "agent.max_turns", "env_config.train_difficulty_max_steps", _CAPS),
    Name("AgentFly", "agent.run_config.max_turns", "env_config.train_difficulty_max_steps", _CAPS),
    Name("AgentFly", "agent.num_chains", "objective_config.group_size"),
    Name("AgentFly", "agent.run_config.num_chains", "objective_config.group_size"),
    Name("AgentFly", "agent.train_on_last_turn", "objective_config.train_on_last_turn"),
    Name("AgentFly", "agent.generation_config.max_tokens", "policy_config.max_new_tokens"),
    Name("AgentFly", "agent.run_config.generation_config.max_tokens", "policy_config.max_new_tokens"),
    Name("AgentFly", "agent.run_config.max_concurrent_chains", "feeder_config.max_concurrent"),
    Name(_VERL, "actor_rollout_ref.model.path", "policy_config.base_model", "a folder, or a name of the hub"),
    Name(
        _VERL,
        "actor_rollout_ref.model.enable_gradient_checkpointing",
        "algorithm_config.deepspeed_config_filename",
        f"`activation_checkpointing` {_BY_FILE}",
    ),
    Name(_VERL, "actor_rollout_ref.actor.optim.lr", "algorithm_config.learning_rate"),
    Name(
        "AgentFly",
        "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio",
        "algorithm_config.warmup_steps",
        "optimizer steps, not a share",
    ),
    Name(
        _VERL,
        "actor_rollout_ref.actor.ppo_mini_batch_size",
        "algorithm_config.gradient_accumulation_steps",
        _STEPS_OF_OPTIMIZER,
    ),
    Name(_VERL, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "algorithm_config.per_device_train_batch_size"),
    Name(_VERL, "actor_rollout_ref.actor.policy_loss.loss_mode", "objective_config.loss_type", "`vanilla` is `clipped`"),
    Name(_VERL, "reward_model.overlong_buffer.len", "objective_config.overlong_buffer_len", "0: off"),
    Name(_VERL, "reward_model.overlong_buffer.penalty_factor", "objective_config.overlong_penalty_factor"),
    Name(_VERL, "actor_rollout_ref.actor.use_kl_loss", "objective_config.kl_loss_coef", "0: off"),
    Name(_VERL, "actor_rollout_ref.actor.kl_loss_coef", "objective_config.kl_loss_coef"),
    Name(_VERL, "actor_rollout_ref.actor.kl_loss_type", "objective_config.kl_loss_type"),
    Name("AgentFly", "actor_rollout_ref.actor.entropy_coeff", "objective_config.entropy_coeff"),
    Name(
        _VERL,
        "actor_rollout_ref.actor.fsdp_config.param_offload",
        "algorithm_config.deepspeed_config_filename",
        f"`offload_param` {_BY_FILE}",
    ),
    Name(
        _VERL,
        "actor_rollout_ref.actor.fsdp_config.optimizer_offload",
        "algorithm_config.deepspeed_config_filename",
        f"`offload_optimizer` {_BY_FILE}",
    ),
    Name(_VERL, "actor_rollout_ref.rollout.name", "policy_config.engine"),
    Name(_VERL, "actor_rollout_ref.rollout.gpu_memory_utilization", "policy_config.gpu_memory_utilization"),
    Name(_VERL, "actor_rollout_ref.rollout.tensor_model_parallel_size", "policy_config.vllm_args", _TENSOR_PARALLEL),
    Name("VAGEN", "actor_rollout_ref.rollout.enable_chunked_prefill", "policy_config.vllm_args", _SAME_THERE),
    Name("VAGEN", "actor_rollout_ref.rollout.enforce_eager", "policy_config.vllm_args", _SAME_THERE),
    Name("VAGEN", "actor_rollout_ref.rollout.temperature", "policy_config.temperature"),
    Name("VAGEN", "actor_rollout_ref.rollout.val_kwargs.temperature", "policy_config.eval_temperature"),
    Name("VAGEN", "actor_rollout_ref.rollout.top_p", "policy_config.top_p"),
    Name("VAGEN", "actor_rollout_ref.rollout.n", "objective_config.group_size"),
    Name("VAGEN", "critic.optim.lr", "objective_config.critic.learning_rate"),
    Name(_VERL, "trainer.critic_warmup", "objective_config.critic.warmup_iterations"),
    Name(_VERL, "trainer.project_name", "log_config.project_name"),
    Name(_VERL, "trainer.experiment_name", "log_config.run_name"),
    Name(_VERL, "trainer.logger", "algorithm_config.report_to"),
    Name(_VERL, "trainer.total_training_steps", "feeder_config.num_iterations"),
    Name(_VERL, "trainer.save_freq", "trainer_config.save_every", "these have the optimizer's state"),
    Name(_VERL, "trainer.test_freq", "feeder_config.eval_every"),
    Name(_VERL, "trainer.val_before_train", "feeder_config.evaluate_first"),
    Name("VAGEN", "trainer.val_generations_to_log_to_wandb", "log_config.table_episodes"),
    Name("VAGEN", "rollout_manager.max_turns", "env_config.train_difficulty_max_steps", _CAPS),
    Name("VAGEN", "rollout_manager.window_size", "context_config.num_rounds"),
    Name("VAGEN", "rollout_manager.use_multi_turn_reward", "objective_config.use_multi_turn_reward"),
    Name("VAGEN", "rollout_manager.n_trajectory", "objective_config.group_size"),
    Name("RLinf", "runner.logger.log_path", "save_path"),
    Name("RLinf", "runner.output_dir", "save_path"),
    Name("RLinf", "runner.logger.project_name", "log_config.project_name"),
    Name("RLinf", "runner.logger.experiment_name", "log_config.run_name"),
    Name("RLinf", "runner.experiment_name", "log_config.run_name"),
    Name("RLinf", "runner.logger.logger_backends", "algorithm_config.report_to"),
    Name("RLinf", "runner.max_steps", "feeder_config.num_iterations"),
    Name("RLinf", "runner.val_check_interval", "feeder_config.eval_every", "0: never"),
    Name("RLinf", "runner.save_interval", "trainer_config.save_every", "these have the optimizer's state"),
    Name("RLinf", "runner.seq_length", "algorithm_config.cutoff_len"),
    Name("RLinf", "runner.only_eval", "feeder_config.mode", "`eval`"),
    Name("RLinf", "runner.max_tokens_per_mbs", "algorithm_config.max_tokens_per_micro_batch"),
    Name("RLinf", "runner.enable_dynamic_batch_size", "algorithm_config.max_tokens_per_micro_batch", "0: off"),
    Name("RLinf", "algorithm.group_size", "objective_config.group_size"),
    Name("RLinf", "algorithm.adv_type", "objective_config.adv_estimator"),
    Name(
        "RLinf",
        "algorithm.normalize_advantages",
        "objective_config.normalize_advantages",
        "of estimators that do not whiten anyway",
    ),
    Name("RLinf", "algorithm.loss_type", "objective_config.loss_type", "`ppo` is `clipped`"),
    Name("RLinf", "algorithm.loss_agg_func", "objective_config.loss_agg_mode"),
    Name("RLinf", "algorithm.kl_beta", "objective_config.kl_loss_coef"),
    Name("RLinf", "algorithm.kl_penalty_type", "objective_config.kl_loss_type"),
    Name("RLinf", "algorithm.reinpp_kl_beta", "objective_config.kl_reward_coef"),
    Name("RLinf", "algorithm.ratio_clip_eps", "objective_config.clip_ratio_low", "and `clip_ratio_high`"),
    Name("RLinf", "algorithm.clip_ratio_c", "objective_config.clip_ratio_c", "0 for null"),
    Name("RLinf", "algorithm.early_stop_imp_ratio", "objective_config.early_stop_imp_ratio", "by sequence"),
    Name("RLinf", "algorithm.entropy_bonus", "objective_config.entropy_coeff"),
    Name("RLinf", "algorithm.reward_type", "objective_config.use_multi_turn_reward", "true: by step"),
    Name("RLinf", "algorithm.n_minibatches", "algorithm_config.gradient_accumulation_steps", _STEPS_OF_OPTIMIZER),
    Name("RLinf", "algorithm.training_batch_size_per_gpu", "algorithm_config.per_device_train_batch_size"),
    Name("RLinf", "algorithm.sampling_params.temperature", "policy_config.temperature"),
    Name("RLinf", "algorithm.sampling_params.do_sample", "policy_config.temperature", "0: no sampling"),
    Name("RLinf", "algorithm.sampling_params.top_k", "policy_config.top_k", "-1: off"),
    Name("RLinf", "algorithm.sampling_params.top_p", "policy_config.top_p"),
    Name("RLinf", "algorithm.sampling_params.max_new_tokens", "policy_config.max_new_tokens"),
    Name("RLinf", "algorithm.length_params.max_new_token", "policy_config.max_new_tokens"),
    Name("RLinf", "algorithm.length_params.max_length", "policy_config.max_model_len"),
    Name("RLinf", "rollout.backend", "policy_config.engine"),
    Name("RLinf", "rollout.gpu_memory_utilization", "policy_config.gpu_memory_utilization"),
    Name("RLinf", "rollout.tensor_parallel_size", "policy_config.vllm_args", _SAME_THERE),
    Name("RLinf", "rollout.enforce_eager", "policy_config.vllm_args", _SAME_THERE),
    Name("RLinf", "rollout.max_running_requests", "policy_config.max_num_seqs"),
    Name("RLinf", "rollout.model.model_path", "policy_config.base_model", "a folder, or a name of the hub"),
    Name("RLinf", "rollout.model.model_type", "model_config.model_type"),
    Name("RLinf", "rollout.recompute_logprobs", "objective_config.loss_type", "`decoupled` and `truncated` do"),
    Name("RLinf", "data.rollout_batch_size", "env_config.train_tasks_rollout_size", _TIMES_GROUP),
    Name("RLinf", "data.val_rollout_batch_size", "env_config.test_tasks_rollout_size", "tasks of a whole round; -1: all"),
    Name("RLinf", "data.train_data_paths", "env_config.train_tasks", "one file"),
    Name("RLinf", "data.val_data_paths", "env_config.test_tasks", "one file"),
    Name("RLinf", "data.shuffle", "env_config.train_tasks_sampler", "all of them shuffle"),
    Name("RLinf", "data.seed", "feeder_config.seed"),
    Name("RLinf", "actor.seed", "trainer_config.seed"),
    Name("RLinf", "actor.micro_batch_size", "algorithm_config.per_device_train_batch_size"),
    Name("RLinf", "actor.global_batch_size", "algorithm_config.gradient_accumulation_steps", _STEPS_OF_OPTIMIZER),
    Name("RLinf", "actor.offload_optimizer", "algorithm_config.deepspeed_config_filename", f"`offload_optimizer` {_BY_FILE}"),
    Name("RLinf", "actor.offload_weight", "algorithm_config.deepspeed_config_filename", f"`offload_param` {_BY_FILE}"),
    Name("RLinf", "actor.calculate_flops", "trainer_config.peak_tflops", "`mfu` is always reported where the peak is known"),
    Name("RLinf", "actor.model.model_path", "policy_config.base_model", "a folder, or a name of the hub"),
    Name("RLinf", "actor.model.precision", "algorithm_config.deepspeed_config_filename", f"`bf16` {_BY_FILE}"),
    Name(
        "RLinf",
        "actor.model.recompute_granularity",
        "algorithm_config.deepspeed_config_filename",
        f"`activation_checkpointing` {_BY_FILE}",
    ),
    Name("RLinf", "actor.model.is_lora", "trainer_config.lora.rank", "0: no adapters"),
    Name("RLinf", "actor.model.lora_rank", "trainer_config.lora.rank"),
    Name("RLinf", "actor.optim.lr", "algorithm_config.learning_rate"),
    Name("RLinf", "actor.optim.value_lr", "objective_config.critic.learning_rate"),
    Name("RLinf", "actor.optim.adam_beta2", "algorithm_config.adam_beta2"),
    Name("RLinf", "actor.optim.weight_decay", "algorithm_config.weight_decay"),
    Name("RLinf", "actor.optim.clip_grad", "algorithm_config.max_grad_norm"),
    Name("RLinf", "actor.lr_sched.lr_warmup_iters", "algorithm_config.warmup_steps"),
    Name("RLinf", "actor.lr_sched.lr_decay_style", "algorithm_config.lr_scheduler_type"),
    Name("RLinf", "actor.lr_sched.lr_decay_iters", "algorithm_config.lr_scheduler_steps"),
    Name("RLinf", "actor.lr_sched.min_lr", "algorithm_config.min_lr_ratio", "a share of the learning rate"),
    Name(
        "RLinf",
        "actor.fsdp_config.sharding_strategy",
        "algorithm_config.deepspeed_config_filename",
        f"the ZeRO stage {_BY_FILE}",
    ),
    Name(
        "RLinf", "actor.fsdp_config.cpu_offload", "algorithm_config.deepspeed_config_filename", f"`offload_param` {_BY_FILE}"
    ),
    Name("RLinf", "critic.use_critic_model", "objective_config.adv_estimator", "`gae` and `bi_level_gae` have one"),
    Name("RLinf", "reward.reward_type", "judge_config.judge"),
    Name("RLinf", "reward.use_reward_model", "judge_config.judge", "`rubric_v1` asks a model"),
    Name("RLinf", "env.train.total_num_envs", "env_config.server_size", "of each browser worker"),
    Name("RLinf", "env.train.max_episode_steps", "env_config.train_difficulty_max_steps", _CAPS),
    Name("RLinf", "env.eval.max_episode_steps", "env_config.test_difficulty_max_steps", _CAPS),
)
_BY_NAME = {name.theirs: name for name in NAMES}


def said_otherwise(key: str) -> str:
    """A sentence for whoever writes another program's key; empty when it is none."""
    if name := _BY_NAME.get(key):
        difference = f" ({name.difference})".replace("`", "") if name.difference else ""
        return f"{key} is a key of {' and '.join(name.programs.split(', '))}: write {name.ours} here{difference}"
    return ""


def webgym_words(key: str) -> str:
    """What becomes of a key of WebGym's that is none of ours; empty when it is not one of those."""
    if key in SAME_AS:
        return f"WebGym's name for {SAME_AS[key]}: either may be written"
    if key == SPLIT:
        return "train or test, as WebGym has it: says the mode where feeder_config.mode is not written"
    if entry := WITHOUT_EFFECT.get(key):
        return f"WebGym's; has no effect here: {entry.why}. To change it, {entry.instead}"
    return ""

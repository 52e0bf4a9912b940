"""Every key of WebGym's configuration reference with its default, as tests hold the configuration to it.

`train` and `test` are what rollout_train.yaml and rollout_test.yaml say where they differ. A default of None: the reference
gives none.
"""

from collections.abc import Mapping

GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
_QUESTIONS = ("keypoint_detection", "blocking_detection", "evaluation")
_POOLS = ("metadata", "navigate", "allocate", "release", "screenshot", "ac_tree", "page_metadata", "execute")
_ADDRESS = ("model", "openai_api_key_env_var", "base_url")

REFERENCE: Mapping[str, object] = {
    "save_path": None,
    "data_path": None,
    "model_config.model_type": None,
    "model_config.prompt_version": None,
    "policy_config.base_model": None,
    "policy_config.checkpoint_path": None,
    "policy_config.max_new_tokens": 3072,
    "policy_config.temperature": 1,
    "policy_config.top_p": 0.99,
    "policy_config.top_k": 2,
    "policy_config.min_p": 0,
    "context_config.interaction_mode": None,
    "env_config.vllm_server_url": "http://localhost:8999",
    "env_config.wait_timeout": 2400,
    "env_config.operation_timeout": 120,
    "env_config.vllm_timeout": 240,
    "env_config.evaluation_workers": 16,
    "env_config.screenshot_comparison_workers": 32,
    "env_config.completion_threshold": 0.95,
    "env_config.completion_grace_period": 30,
    "env_config.instance_lifetime_max": 50,
    "env_config.task_timeout_minutes": 300,
    "env_config.server_size": 64,
    "env_config.verbose": False,
    "env_config.use_rich_actree": False,
    "env_config.max_retries": 2,
    **{f"env_config.http_pools.{pool}": 4 if pool in ("allocate", "release") else 128 for pool in _POOLS},
    "env_config.max_vllm_sessions": 128,
    "env_config.split": None,
    "env_config.train_difficulty_max_steps.easy": 10,
    "env_config.train_difficulty_max_steps.medium": 20,
    "env_config.train_difficulty_max_steps.hard": 30,
    "env_config.test_difficulty_max_steps.easy": 30,
    "env_config.test_difficulty_max_steps.medium": 50,
    "env_config.test_difficulty_max_steps.hard": 70,
    "env_config.train_tasks_rollout_size": 1024,
    "env_config.test_tasks_rollout_size": -1,
    "env_config.test_tasks_repeat_times": 1,
    "env_config.train_tasks_sampler": None,
    "env_config.train_tasks": "train.jsonl",
    "env_config.test_tasks": "test.jsonl",
    "openai_config.model": "gemini-3-flash-preview",
    "openai_config.openai_api_key_env_var": "GEMINI_API_KEY",
    "openai_config.base_url": GEMINI,
    **{f"openai_config.{question}.{name}": None for question in _QUESTIONS for name in _ADDRESS},
    "log_config.run_name": None,
    "log_config.wandb_key_env_var": "WANDB_API_KEY",
    "log_config.entity_name": None,
    "algorithm_config.positive_samples_to_train": 1800,
    "algorithm_config.recency_bias_power": 2,
    "algorithm_config.cutoff_len": 16384,
    "algorithm_config.per_device_train_batch_size": 3,
    "algorithm_config.gradient_accumulation_steps": 4,
    "algorithm_config.learning_rate": 1e-6,
    "algorithm_config.num_train_epochs": 2,
    "algorithm_config.warmup_steps": 30,
    "algorithm_config.lr_scheduler_type": "constant_with_warmup",
    "algorithm_config.val_split_ratio": 0.05,
    "algorithm_config.deepspeed_config_filename": "ds_config_b200_zero1.json",
    "algorithm_config.report_to": "wandb",
}
TRAIN: Mapping[str, object] = {"env_config.test_tasks_rollout_size": 0, "env_config.test_tasks_repeat_times": 0}
TEST: Mapping[str, object] = {
    "env_config.max_vllm_sessions": 64,
    "env_config.http_pools.navigate": 32,
    "env_config.http_pools.metadata": 32,
    "env_config.http_pools.ac_tree": 64,
    "env_config.http_pools.page_metadata": 64,
    "env_config.http_pools.execute": 64,
}

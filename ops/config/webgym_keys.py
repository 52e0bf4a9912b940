"""Keys of WebGym's files that are no keys here, so that its tree loads unchanged; nothing else decides what becomes of them.

`SAME_AS` says what is said here under another name. `WITHOUT_EFFECT` has no meaning here: at the value that WebGym publishes
a note says so, any other is refused with what to write instead. `NOT_SET` are values by which WebGym leaves one of our keys
open. `env_config.split` says which mode is meant (`ops.config.translation`).
"""

from dataclasses import dataclass

SPLIT = "env_config.split"
SAME_AS = {
    "env_config.vllm_timeout": "policy_config.vllm_timeout",
    "env_config.max_vllm_sessions": "policy_config.max_num_seqs",
}
NOT_SET: dict[str, tuple[object, ...]] = {
    "save_path": ("<save_path_here>",),
    "data_path": ("<data_path_here>",),
    "policy_config.base_model": (None,),
    "policy_config.checkpoint_path": (None, "model.pt"),
    "env_config.train_difficulty_max_steps": ([],),
    "env_config.test_difficulty_max_steps": ([],),
    "log_config.run_name": ("webgym-<your-run-name>",),
    "log_config.entity_name": ("<your-wandb-entity-name>",),
}


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    published: tuple[object, ...]
    """Values of WebGym's own files and of its reference."""
    why: str
    """What is done here, in a clause."""
    instead: str
    """What to write, in a clause that begins with a verb."""


_OWN_SERVER = WithoutEffect(
    ("http://localhost:8999",),
    "policy workers hold vLLM themselves",
    "write openai for policy_config.engine and the endpoint's address for policy_config.base_url",
)
_ON_THE_BUS = "browser workers join the run's NATS server, and no browser server is called"
_EVERY_VERSION = "every version is a checkpoint with all that training needs to go on"
_LOADED_AHEAD = "the next step's samples are loaded while the present one trains"
_HELD_OUT = "the loss of held-out tasks is measured once a version"
_BY_DEEPSPEED_FILE = "write the name of a DeepSpeed file that says so for algorithm_config.deepspeed_config_filename"
_KEEP = "write trainer_config.keep_checkpoints for those that stay, trainer_config.save_every for those with the optimizer"

WITHOUT_EFFECT = {
    "vllm_server_url": _OWN_SERVER,
    "env_config.vllm_server_url": _OWN_SERVER,
    "env_config.wait_timeout": WithoutEffect(
        (2400,),
        "an operation waits for its place in env_config.http_pools as long as its episode may take",
        "write env_config.task_timeout_minutes for the episode, env_config.operation_timeout for the operation itself",
    ),
    "env_config.screenshot_comparison_workers": WithoutEffect(
        (32,),
        "each episode compares its own screenshots as it goes",
        "write env_config.server_size for the episodes of one browser worker, or start more workers",
    ),
    "env_config.cpu_cluster_token_env_var": WithoutEffect(
        ("CPU_CLUSTER_TOKEN",), _ON_THE_BUS, "write bus_config.keys, the folder with the keys of this node's roles"
    ),
    "env_config.host_ip": WithoutEffect(
        ("<your-host-ip>",), _ON_THE_BUS, "write bus_config.url, the address of your NATS servers"
    ),
    "env_config.master_port": WithoutEffect((7000,), _ON_THE_BUS, "write bus_config.url, which has the port"),
    "env_config.save_traj_progress": WithoutEffect(
        (True,), "every step is on the bus before the next one is asked for", "leave it out: nothing can switch that off"
    ),
    "env_config.save_every_percent": WithoutEffect(
        (25,),
        "every step is on the bus before the next one is asked for",
        "write archive_config.episodes_per_part for the files that the archiver writes",
    ),
    "policy_config.huggingface_token_env_var": WithoutEffect(
        ("HF_TOKEN",), "the hub's client reads its token from HF_TOKEN alone", "leave it out, and put the token into HF_TOKEN"
    ),
    "algorithm_config.model_output_name": WithoutEffect(
        ("model.pt",), "checkpoints are named by their version, and policies are told", "leave it out, or write save_path"
    ),
    "algorithm_config.per_device_eval_batch_size": WithoutEffect(
        (3,), _HELD_OUT, "write algorithm_config.per_device_train_batch_size, which bounds that too"
    ),
    "algorithm_config.do_eval": WithoutEffect(
        (False,), _HELD_OUT, "write a share above 0 for algorithm_config.val_split_ratio"
    ),
    "algorithm_config.eval_strategy": WithoutEffect(
        ("epoch",), _HELD_OUT, "write a share for algorithm_config.val_split_ratio, or 0 for none"
    ),
    "algorithm_config.logging_steps": WithoutEffect(
        (1,),
        "figures are written once a version",
        "write log_config.table_every for sampled episodes; metrics.jsonl has every version",
    ),
    "algorithm_config.plot_loss": WithoutEffect(
        (False,),
        "figures are in metrics.jsonl",
        "write wandb or tensorboard for algorithm_config.report_to",
    ),
    "algorithm_config.save_strategy": WithoutEffect(("steps",), _EVERY_VERSION, _KEEP),
    "algorithm_config.save_steps": WithoutEffect((999999,), _EVERY_VERSION, _KEEP),
    "algorithm_config.save_total_limit": WithoutEffect((1,), _EVERY_VERSION, _KEEP),
    "algorithm_config.save_only_model": WithoutEffect((False,), _EVERY_VERSION, _KEEP),
    "algorithm_config.preprocessing_num_workers": WithoutEffect(
        (16,), _LOADED_AHEAD, "write trainer_config.screenshot_cache_mb for the decoded screenshots that are kept"
    ),
    "algorithm_config.dataloader_num_workers": WithoutEffect(
        (2,), _LOADED_AHEAD, "write trainer_config.torch_threads for the CPU threads of training"
    ),
    "algorithm_config.dataloader_pin_memory": WithoutEffect((True,), _LOADED_AHEAD, "leave it out"),
    "algorithm_config.remove_unused_columns": WithoutEffect((False,), "samples have no columns", "leave it out"),
    "algorithm_config.min_token_length": WithoutEffect(
        (10,),
        "no step is left out because it is short",
        "leave it out; policy_config.max_new_tokens bounds answers from above",
    ),
    "algorithm_config.gradient_checkpointing": WithoutEffect(
        (False,), "the DeepSpeed file says so, by activation_checkpointing", _BY_DEEPSPEED_FILE
    ),
    "algorithm_config.bf16": WithoutEffect((True,), "the DeepSpeed file says so, by bf16.enabled", _BY_DEEPSPEED_FILE),
}

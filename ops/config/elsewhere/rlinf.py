"""RLinf's keys: the run, its objective, its data and its judges; models and simulators are in the files beside."""

from ops.config.elsewhere import measures as count
from ops.config.elsewhere.common import COMMON
from ops.config.elsewhere.conversions import (
    as_number,
    as_text,
    as_whole,
    evaluates,
    loggers,
    off_below_one,
    only_with,
    task_file,
)
from ops.config.elsewhere.rlinf_actor import ACTOR
from ops.config.elsewhere.rlinf_objective import OBJECTIVE
from ops.config.elsewhere.rlinf_rollout import ROLLOUT
from ops.config.elsewhere.rlinf_simulators import SIMULATORS
from ops.config.elsewhere.row import Program, Row, Setting, instead, nothing, ours, same, under

_R, _A, _D = "runner.", "algorithm.", "data."
_PLACES = "every worker that is started joins the run's NATS server, on any node (docs/launching.md)"
_IN_PARTS = "log-probabilities are computed in the micro-batches of training"
_JUDGE = (
    "write the name of a judge for judge_config.judge: environment_v1, rubric_v1 (asks a model), or ./file.py:name of your own"
)
_PROMPT = "an observation is a screenshot with its page's words, made by the browser worker"
_TASKS = "tasks are JSON lines with their website and their check; the first of several files"

_RUN: tuple[Row, ...] = (
    *nothing("cluster.num_nodes cluster.component_placement.* cluster.*", _PLACES),
    *nothing(_R + "task_type", "tasks are of the web"),
    ours(_R + "logger.log_path", "save_path", "the run's folder", as_text),
    ours(_R + "output_dir", "save_path", "the run's folder, where `logger.log_path` is not written", as_text),
    ours(_R + "logger.project_name", "log_config.project_name", "", as_text),
    ours(_R + "logger.experiment_name", "log_config.run_name", "", as_text),
    ours(_R + "experiment_name", "log_config.run_name", "", as_text),
    ours(
        _R + "logger.logger_backends",
        "algorithm_config.report_to",
        "`wandb` and `tensorboard`; metrics.jsonl has all figures",
        loggers,
    ),
    ours(_R + "max_steps", "feeder_config.num_iterations", "one batch each; -1: by `max_epochs`", count.iterations),
    ours(
        _R + "max_epochs",
        "feeder_config.num_iterations",
        "passes over the tasks: their number divided by the batch; of simulators one iteration each",
        count.epochs,
    ),
    ours(_R + "val_check_interval", "feeder_config.eval_every", "-1: 0, never", off_below_one),
    ours(
        _R + "save_interval",
        "trainer_config.save_every",
        "these have the optimizer's state; every version is kept for a while",
        count.iterations_or_usual,
    ),
    ours(_R + "seq_length", count.LENGTH, "of one step's prompt and answer", count.length),
    *nothing(_R + "max_prompt_length", "prompt and answer count together: `runner.seq_length`"),
    *instead(_R + "resume_dir", "start the run's own folder again, which goes on, or write policy_config.checkpoint_path"),
    ours(_R + "ckpt_path", "policy_config.checkpoint_path", "a folder that transformers can read", as_text),
    ours(_R + "only_eval", "feeder_config.mode", "true: `eval`", evaluates),
    ours(
        _R + "max_tokens_per_mbs",
        "algorithm_config.max_tokens_per_micro_batch",
        "only with `enable_dynamic_batch_size`",
        only_with(_R + "enable_dynamic_batch_size", as_whole),
    ),
    *nothing(_R + "enable_dynamic_batch_size", "`max_tokens_per_mbs` counts where it is true"),
    *nothing(
        under(_R[:-1], "eval_policy_path per_worker_log per_worker_log_path profiler.* metrics.*"),
        "each worker has its own log in the run's folder",
    ),
)
_DATA: tuple[Row, ...] = (
    ours(_D + "train_data_paths", "env_config.train_tasks", _TASKS, task_file),
    ours(_D + "val_data_paths", "env_config.test_tasks", _TASKS, task_file),
    ours(
        _D + "rollout_batch_size",
        "env_config.train_tasks_rollout_size",
        "counts prompts there, episodes here: times the group's size",
        count.episodes,
    ),
    *nothing(
        _D + "val_rollout_batch_size", "every test task is played; env_config.test_tasks_rollout_size: the first so many"
    ),
    *nothing(_D + "max_prompt_length", "prompt and answer count together: `runner.seq_length`"),
    ours(_D + "seed", "feeder_config.seed", "", as_whole),
    same(_D + "shuffle", True, "samplers draw tasks in random order", "write a sampler for env_config.train_tasks_sampler"),
    *nothing(_D + "validation_shuffle", "test tasks are played in the file's order"),
    *nothing(_D + "num_workers", "the next step's samples are loaded while one trains"),
    *nothing(
        under(
            _D[:-1],
            "type data_size dataset_name prompt_key answer_key image_keys choice_key solution_key apply_chat_template "
            "filter_prompt_by_length process_workers use_chat_template system_prompt prompt_file lazy_loading "
            "tokenizer.* tokenizer processor.*",
        ),
        _PROMPT,
    ),
)
_REWARD: tuple[Row, ...] = (
    *instead("reward.reward_type", _JUDGE),
    same("reward.use_reward_model", False, "judges are roles of their own", _JUDGE),
    ours("reward.reward_scale", "objective_config.reward_scale", "a failure earns 0 here, there minus as much", as_number),
    *nothing("reward.group_name", "workers are named by role, host and process"),
    *nothing(("reward.tokenizer.*", "reward.*"), "a judge's model answers at an endpoint (openai_config)"),
    same(
        "critic.use_critic_model",
        False,
        "`gae` and `bi_level_gae` have a critic, the others none",
        "write gae or bi_level_gae for objective_config.adv_estimator",
    ),
    ours("critic.optim.lr", "objective_config.critic.learning_rate", "", as_number),
    *nothing("critic.*", "the critic is trained as the policy is, by the same DeepSpeed file"),
    *nothing(
        ("inference.*", "agentloop.print_outputs", "agentloop.group_name", "agentloop.is_dynamic_rollout_batch"), _IN_PARTS
    ),
    *instead(
        ("tools.*", "agentloop.toolcall_parser"),
        "write standard or extended for context_config.actions: tools are a browser's",
    ),
    *nothing("rollout_server.*", "episodes come from browser workers; `millrace watch` and consumers read the run's streams"),
    *nothing("agentloop.*", "an observation follows every action, with what it did"),
)
RLINF = Program(
    "RLinf",
    "rlinf",
    (
        *COMMON,
        *_RUN,
        *OBJECTIVE,
        *_DATA,
        *_REWARD,
        *ROLLOUT,
        *ACTOR,
        *SIMULATORS,
    ),
    (
        Setting("feeder_config.mode", "sync", "it plays a batch, then trains on it; `async` does not wait"),
        Setting("env_config.completion_threshold", 1.0, "every episode of a batch is waited for"),
        Setting("policy_config.top_k", -1, "all tokens are sampled from where no top_k is written"),
        Setting("policy_config.top_p", 1.0, "the same of top_p"),
        Setting("algorithm_config.val_split_ratio", 0.0, "only cloning holds tasks out"),
    ),
)

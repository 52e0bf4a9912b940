"""verl's keys of what answers."""

from ops.config.elsewhere import measures as count
from ops.config.elsewhere import sampling
from ops.config.elsewhere.conversions import (
    as_number,
    as_whole,
    dtype,
    engine,
    top_k,
    vllm_argument,
)
from ops.config.elsewhere.row import Row, nothing, ours, same, under

_R = "actor_rollout_ref.rollout."
_OWN_GPUS = "the trainer has GPUs of its own, so nothing is moved to make room for the policy"
_IN_PARTS = "log-probabilities are computed in the micro-batches of training"
_BEHIND_VLLM = "policy workers hold vLLM, which is told by policy_config.vllm_args"


ROLLOUT: tuple[Row, ...] = (
    ours(_R + "name", "policy_config.engine", "vLLM, or any OpenAI-compatible endpoint (`openai`)", engine),
    ours(
        _R + "n",
        "objective_config.group_size",
        "episodes of a task",
        count.group,
        default=1,
    ),
    ours(_R + "temperature", "policy_config.temperature", "", as_number, default=1.0),
    ours(_R + "top_p", "policy_config.top_p", "", as_number, default=1.0),
    ours(_R + "top_k", "policy_config.top_k", "-1: off", top_k, default=-1),
    ours(_R + "do_sample", "policy_config.temperature", "false: 0", sampling.greedy_unless_sampled),
    ours(_R + "val_kwargs.do_sample", "policy_config.eval_temperature", "false: 0", sampling.eval_greedy, default=False),
    ours(
        _R + "val_kwargs.temperature", "policy_config.eval_temperature", "where `do_sample` is true", sampling.eval_temperature
    ),
    ours(
        _R + "val_kwargs.top_p",
        "policy_config.top_p",
        "evaluation samples as training does",
        sampling.as_in_training(_R + "top_p", "policy_config.top_p"),
    ),
    ours(
        _R + "val_kwargs.top_k",
        "policy_config.top_k",
        "evaluation samples as training does",
        sampling.as_in_training(_R + "top_k", "policy_config.top_k"),
    ),
    ours(_R + "val_kwargs.n", "env_config.test_tasks_repeat_times", "", as_whole),
    ours(
        _R + "gpu_memory_utilization",
        "policy_config.gpu_memory_utilization",
        "policies have their GPUs to themselves: 0.9 is usual",
        as_number,
    ),
    ours(
        _R + "tensor_model_parallel_size",
        "policy_config.vllm_args",
        "`tensor_parallel_size` there",
        vllm_argument("tensor_parallel_size"),
    ),
    ours(
        _R + "pipeline_model_parallel_size",
        "policy_config.vllm_args",
        "`pipeline_parallel_size` there",
        vllm_argument("pipeline_parallel_size"),
    ),
    *(
        ours(_R + name, "policy_config.vllm_args", "by the same name there", vllm_argument(name))
        for name in ("enforce_eager", "enable_chunked_prefill", "enable_prefix_caching", "max_num_batched_tokens")
    ),
    ours(_R + "engine_kwargs.vllm.*", "policy_config.vllm_args", "by the same name there"),
    *nothing(_R + "engine_kwargs.*", "no other engine is here"),
    ours(_R + "max_num_seqs", "policy_config.max_num_seqs", "", as_whole),
    ours(_R + "max_model_len", count.LENGTH, "prompt and answer", count.length),
    ours(_R + "dtype", "policy_config.dtype", "`auto`: the model's own", dtype),
    ours(
        _R + "prompt_length",
        count.LENGTH,
        "as `data.max_prompt_length`",
        count.sequence_length("data.max_prompt_length", "data.max_response_length"),
    ),
    ours(_R + "response_length", "policy_config.max_new_tokens", "as `data.max_response_length`", count.answer_length),
    ours(
        _R + "multi_turn.max_assistant_turns",
        count.CAPS,
        "for each difficulty, in training and evaluation; where `multi_turn.enable` is true",
        count.verls_turns,
    ),
    *nothing(_R + "multi_turn.max_user_turns", "an observation follows every action: max_assistant_turns counts"),
    ours(
        count.SEVERAL,
        count.CAPS,
        "false: 1, an episode is one answer; true: `max_assistant_turns`, or the recipe's",
        count.single_turn,
        default=False,
    ),
    *nothing(_R + "multi_turn.*", "the actions are a browser's (context_config.actions)"),
    *nothing(_R + "calculate_log_probs", "the sampler's log-probabilities are always kept"),
    same(
        _R + "logprobs_mode",
        "processed_logprobs",
        "log-probabilities are those of the distribution that was sampled from",
        "leave it out: they are those of the distribution that was sampled from",
    ),
    *nothing(
        under(_R[:-1], "free_cache_engine load_format multi_stage_wake_up layered_summon checkpoint_engine.*"), _OWN_GPUS
    ),
    *nothing(
        under(
            _R[:-1],
            "log_prob_micro_batch_size log_prob_micro_batch_size_per_gpu log_prob_use_dynamic_bsz "
            "log_prob_max_token_len_per_gpu",
        ),
        _IN_PARTS,
    ),
    *nothing(
        under(_R[:-1], "mode agent.*"), "every answer is asked for by itself; start as many policy workers as there are GPUs"
    ),
    *(
        same(_R + name, 1, "a policy worker has the whole model", "start more policy workers, each has the whole model")
        for name in ("data_parallel_size", "expert_parallel_size")
    ),
    *nothing(
        under(_R[:-1], "limit_images limit_mm_per_prompt"), "context_config.num_rounds says how many screenshots a prompt has"
    ),
    *nothing(
        under(
            _R[:-1],
            "disable_log_stats ignore_eos cudagraph_capture_sizes scheduling_policy skip_tokenizer_init quantization "
            "quantization_config_file use_fire_sampling mtp",
        ),
        _BEHIND_VLLM,
    ),
    *nothing(_R + "max_trajectory_length", "data.max_trajectory_length counts"),
    *nothing(under(_R[:-1], "over_sample_rate skip_rollout skip_dump_dir"), "every admitted episode ends in a trajectory"),
    *nothing(_R + "enable_rollout_routing_replay", "experts are routed anew in training"),
    *nothing(
        under(_R[:-1], "trace.* prometheus.* profiler.* profile.*"), "`millrace monitor` shows it, --prometheus serves it"
    ),
)

"""RLinf's keys of what answers."""

from ops.config.elsewhere import measures as count
from ops.config.elsewhere.conversions import as_number, as_text, as_whole, dtype, engine, vllm_argument
from ops.config.elsewhere.row import Row, instead, nothing, ours, same, under

_R, _M = "rollout.", "rollout.model."
_SGLANG = "SGLang is not here: vLLM answers (policy_config.engine)"
_BEHIND_VLLM = "policy workers hold vLLM, which is told by policy_config.vllm_args"
_STREAMS = "roles meet on the run's streams (docs/messages.md)"
_OWN_GPUS = "policies and the trainer have GPUs of their own, so nothing makes room for the other"
_HASHED = "weights are checked by their hashes"
_KIND = "write qwen3-think for model_config.model_type where the model thinks; the architecture is read from its folder"

ROLLOUT: tuple[Row, ...] = (
    ours(_M + "model_path", "policy_config.base_model", "a folder, or a name of the hub", as_text),
    *instead(_M + "model_type", _KIND),
    ours(_M + "precision", "policy_config.dtype", "`auto`: the model's own", dtype),
    ours(
        _R + "gpu_memory_utilization",
        "policy_config.gpu_memory_utilization",
        "policies have their GPUs to themselves: 0.9 is usual",
        as_number,
    ),
    *(
        ours(_R + name, "policy_config.engine", "vLLM, or any OpenAI-compatible endpoint (`openai`)", engine)
        for name in ("backend", "rollout_backend", "generation_backend")
    ),
    *(
        ours(_R + name, "policy_config.vllm_args", "by the same name there", vllm_argument(name))
        for name in ("tensor_parallel_size", "pipeline_parallel_size", "enforce_eager")
    ),
    *(
        ours(_R + f"vllm.{name}", "policy_config.vllm_args", "by the same name there", vllm_argument(name))
        for name in ("enable_chunked_prefill", "enable_prefix_caching", "max_num_batched_tokens")
    ),
    *nothing(_R + "vllm.*", _BEHIND_VLLM),
    ours(_R + "max_running_requests", "policy_config.max_num_seqs", "", as_whole),
    ours(
        "agentloop.max_turns",
        count.CAPS,
        "for each difficulty, in training and evaluation; not of simulators",
        count.loops_turns,
        default=1,
    ),
    *nothing(
        under(
            _R[:-1],
            "distributed_executor_backend disable_log_stats detokenize padding eos attention_backend "
            "cuda_graph_max_bs return_logprobs weight_reload seed",
        ),
        _BEHIND_VLLM,
    ),
    *nothing(under(_R[:-1], "sglang.* sglang_decode_log_interval use_torch_compile torch_compile_max_bs"), _SGLANG),
    *nothing(under(_R[:-1], "validate_weight validate_weight_first_sync validate_save_dir"), _HASHED),
    *nothing(_R + "print_outputs", "`millrace view` shows every answer"),
    *nothing(under(_R[:-1], "group_name"), "workers are named by role, host and process"),
    *nothing(under(_R[:-1], "channel.name channel.queue_name channel.queue_size channel.*"), _STREAMS),
    same(
        _R + "mode",
        "collocate",
        "`millrace run` divides a machine's GPUs among policies and trainer",
        "start policies and trainer on the nodes that you want (docs/launching.md)",
    ),
    *nothing(under(_R[:-1], "enable_offload"), _OWN_GPUS),
    *nothing(under(_R[:-1], "pipeline_stage_num"), "every episode goes on by itself: nothing waits for a batch of them"),
    *nothing(
        ("weight_syncer.*", _R + "weight_syncer.*", _R + "sync_weight_nccl_max_ctas"),
        "policies load announced weights (bus_config.weights)",
    ),
)

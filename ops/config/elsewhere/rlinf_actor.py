"""RLinf's keys of training: model, optimizer, schedule, FSDP, Megatron."""

from ops.config.elsewhere import measures as count
from ops.config.elsewhere import rates
from ops.config.elsewhere.conversions import (
    LORA_RANKS,
    as_number,
    as_text,
    as_whole,
    checkpointing,
    first_moment,
    offload,
    only_where,
    precision,
    zero_stage,
)
from ops.config.elsewhere.row import Convert, Kind, Row, Said, Several, in_file, instead, nothing, ours, same, under
from ops.config.elsewhere.written import Written, number, text, truth, whole

_A, _M, _O, _S, _F, _T = "actor.", "actor.model.", "actor.optim.", "actor.lr_sched.", "actor.fsdp_config.", "actor.tokenizer."
_ADAPTERS = ("trainer_config.lora.rank", "trainer_config.lora.alpha")
_STAGES = {"full_shard": 3, "shard_grad_op": 2, "hybrid_shard": 3, "no_shard": 1}
_SCHEDULES = {"constant": "constant_with_warmup", "cosine": "cosine", "linear": "linear"}
_MEGATRON = "Megatron is not here: training is by DeepSpeed's ZeRO"
_BY_RANK = "a sequence is computed by one rank, and the model is divided by ZeRO (`millrace plan` says whether it fits)"
_ITS_OWN = "the model's folder says so"
_FSDP = "DeepSpeed's ZeRO divides the model"
_STREAMS = "roles meet on the run's streams (docs/messages.md)"
_OWN_GPUS = "policies and the trainer have GPUs of their own, so nothing makes room for the other"
_SLOWER = "during training too, which is slower: leave it out where memory allows (`millrace plan`)"
_RATE = "the rate falls from algorithm_config.learning_rate to min_lr_ratio of it"


def _backend(value: object, written: Written) -> object:
    if text(value).startswith("fsdp") and written.says(_F + "sharding_strategy"):
        return Said(Kind.NOTHING, f"{_F}sharding_strategy says how the model is divided")
    return zero_stage({"fsdp": 3, "fsdp2": 3, "megatron": 1}, "leave it out: training is by DeepSpeed's ZeRO")(value, written)


def _of_fsdp(convert: Convert) -> Convert:
    """In effect where FSDP trains."""

    return only_where(
        lambda written: written.get(_A + "training_backend") != "megatron", f"{_A}training_backend is megatron", convert
    )


def _precision(value: object, written: Written) -> object:
    """That in which layers are computed: FSDP may have another one than the model's weights."""
    if written.get(_A + "training_backend") != "megatron":
        amp = written.get(_F + "amp_autocast.precision") if written.true(_F + "amp_autocast.enabled") else None
        value = amp or written.get(_F + "mixed_precision.param_dtype") or written.get(_M + "precision") or value
    return precision(value, written)


def _lora(value: object, written: Written) -> object:
    return _adapters(int(written.number(LORA_RANKS[1]) or 32) if truth(value) else 0)


def _rank(value: object, written: Written) -> object:
    return _adapters(whole(value) if written.true(_M + "is_lora") else 0)


def _adapters(rank: int) -> Several:
    """There alpha is the rank always."""
    alpha = {"trainer_config.lora.alpha": rank} if rank else {}
    return Several({"trainer_config.lora.rank": rank, **alpha})


def _least_rate(value: object, written: Written) -> object:
    rate = written.number(_O + "lr") or 0.0
    return number(value) / rate if rate else Said(Kind.NOTHING, "no rate is written")


def _warmup_share(value: object, written: Written) -> object:
    if written.number(_S + "lr_warmup_iters"):
        return Said(Kind.NOTHING, "lr_warmup_iters counts where it is above 0")
    return rates.warmup_share(value, written)


def _warmup(value: object, written: Written) -> object:
    if not number(value) and written.number(_S + "lr_warmup_fraction"):
        return Said(Kind.NOTHING, "lr_warmup_fraction counts where it is 0")
    return int(number(value))


_MODEL: tuple[Row, ...] = (
    ours(
        _M + "model_path",
        "policy_config.base_model",
        "a folder, or a name of the hub; one model is trained and answers",
        as_text,
    ),
    *instead(_M + "megatron_checkpoint", "write a folder that transformers can read for policy_config.base_model"),
    *instead(
        _M + "model_type", "write qwen3-think for model_config.model_type where the model thinks; its folder says the rest"
    ),
    in_file(_M + "precision", "bf16 or fp16", _precision, "of computing; with fp16 policies answer in it too"),
    in_file(
        _M + "recompute_granularity", "activation_checkpointing", lambda value, written: checkpointing(bool(value), written)
    ),
    *nothing(under(_M[:-1], "recompute_method recompute_num_layers"), "all layers are computed again, where any is"),
    ours(_M + "is_lora", _ADAPTERS, "false: 0; true: `lora_rank`, which is alpha too", _lora),
    ours(LORA_RANKS[1], _ADAPTERS, "only where `is_lora` is true", _rank),
    *instead(_M + "lora_path", "merge the adapter into its model, and write that model for policy_config.checkpoint_path"),
    *nothing(
        under(
            _M[:-1],
            "tensor_model_parallel_size pipeline_model_parallel_size sequence_parallel "
            "context_parallel_size expert_model_parallel_size expert_tensor_parallel_size",
        ),
        _BY_RANK,
    ),
    *nothing(
        under(_M[:-1], "seq_length encoder_seq_length variable_seq_lengths"),
        "`runner.seq_length` counts; sequences are packed",
    ),
    *nothing(
        under(
            _M[:-1],
            "add_bias_linear add_qkv_bias activation normalization position_embedding_type vocab_size hidden_size "
            "attn_implementation low_cpu_mem_usage use_cpu_initialization max_position_embeddings",
        ),
        _ITS_OWN,
    ),
    *nothing(
        under(
            _M[:-1],
            "apply_rope_fusion bias_dropout_fusion persist_layer_norm bias_activation_fusion "
            "attention_softmax_in_fp32 batch_p2p_comm gradient_accumulation_fusion moe_token_dispatcher_type "
            "moe_grouped_gemm moe_router_load_balancing_type moe_router_topk moe_router_pre_softmax moe_aux_loss_coeff "
            "moe_router_bias_update_rate init_method_std multi_latent_attention",
        ),
        _MEGATRON,
    ),
    same(
        _M + "trust_remote_code",
        False,
        "no code of a model's folder is run",
        "leave it out: no code of a model's folder is run",
    ),
)
_TRAINING: tuple[Row, ...] = (
    *nothing(_A + "group_name", "workers are named by role, host and process"),
    in_file(
        _A + "training_backend",
        "zero_optimization.stage",
        _backend,
        "FSDP divides everything, as stage 3 does; Megatron's distributed optimizer is stage 1",
    ),
    ours(_A + "seed", "trainer_config.seed", "", as_whole),
    ours(_A + "micro_batch_size", "algorithm_config.per_device_train_batch_size", "", as_whole),
    ours(
        _A + "global_batch_size",
        "algorithm_config.gradient_accumulation_steps",
        "samples of an optimizer step, divided by micro-batch and ranks",
        count.accumulation_of_samples,
    ),
    in_file(_A + "offload_optimizer", "zero_optimization.offload_optimizer", offload("offload_optimizer"), _SLOWER),
    in_file(_A + "offload_weight", "zero_optimization.offload_param", offload("offload_param"), _SLOWER),
    *nothing(_A + "offload_grad", "gradients go with the optimizer, where that is offloaded"),
    *nothing(under(_A[:-1], "enable_offload"), _OWN_GPUS),
    *nothing(
        under(_A[:-1], "enable_dp_load_balance pack_traj"), "micro-batches are dealt to ranks by their tokens, and packed"
    ),
    *nothing(_A + "calculate_flops", "`mfu` is always reported where trainer_config.peak_tflops is known"),
    *nothing(under(_A[:-1], "mcore_gpt spec_name"), _MEGATRON),
    *instead(
        _M + "sharding_strategy",
        "write it as actor.fsdp_config.sharding_strategy there; here it is the stage in the DeepSpeed file",
    ),
    *nothing(under(_A[:-1], "channel.name channel.queue_name channel.queue_size channel.*"), _STREAMS),
)
_OPTIMIZER: tuple[Row, ...] = (
    same(_O + "optimizer", ("adam", "adamw", "AdamW"), "the optimizer is AdamW", "leave it out: the optimizer is AdamW"),
    ours(_O + "lr", "algorithm_config.learning_rate", "", as_number),
    ours(_O + "value_lr", "objective_config.critic.learning_rate", "", as_number),
    ours(
        _O + "critic_warmup_steps",
        "objective_config.critic.warmup_iterations",
        "optimizer steps there",
        count.critics_iterations,
    ),
    ours(_O + "adam_beta1", "algorithm_config.adam_beta2", "the first moment's is 0.9 always", first_moment),
    ours(_O + "adam_beta2", "algorithm_config.adam_beta2", "", as_number),
    *nothing(_O + "adam_eps", "it is 1e-8, torch's own"),
    ours(_O + "weight_decay", "algorithm_config.weight_decay", "", as_number),
    ours(_O + "clip_grad", "algorithm_config.max_grad_norm", "", as_number),
    *(
        ours(
            group + "min_lr",
            "algorithm_config.min_lr_ratio",
            "a share of the rate, of one that falls",
            rates.of_falling(_least_rate),
        )
        for group in (_S, _O)
    ),
    *nothing(under(_O[:-1], "bf16 fp16"), "`actor.model.precision` counts"),
    *nothing(
        under(_O[:-1], "loss_scale initial_loss_scale min_loss_scale loss_scale_window"),
        "the fp16 part of a DeepSpeed file of your own may say so (loss_scale_window)",
    ),
    *nothing(_O + "hysteresis", "every overflow of fp16 lowers the scale"),
    *nothing(
        under(
            _O[:-1],
            "use_distributed_optimizer overlap_grad_reduce overlap_param_gather optimizer_enable_pin "
            "overlap_param_gather_with_optimizer_step optimizer_cpu_offload use_precision_aware_optimizer",
        ),
        "ZeRO divides the optimizer (overlap_comm in its file)",
    ),
    ours(
        _S + "lr_warmup_iters",
        "algorithm_config.warmup_steps",
        "optimizer steps; `lr_warmup_fraction` where it is 0",
        _warmup,
        default=0,
    ),
    ours(_S + "lr_warmup_fraction", "algorithm_config.warmup_steps", "a share of all optimizer steps", _warmup_share),
    same(_S + "lr_warmup_init", 0.0, "the rate rises from 0", "leave it out: the rate rises from 0"),
    *nothing(_S + "max_lr", _RATE),
    ours(
        _S + "lr_decay_style",
        "algorithm_config.lr_scheduler_type",
        "`constant` has a warm-up too: `constant_with_warmup`",
        rates.schedule(_SCHEDULES),
    ),
    ours(_S + "lr_decay_iters", "algorithm_config.lr_scheduler_steps", "of a falling rate", rates.of_falling(as_whole)),
)
_FSDP_ROWS: tuple[Row, ...] = (
    in_file(
        _F + "sharding_strategy",
        "zero_optimization.stage",
        _of_fsdp(zero_stage(_STAGES, "write 1, 2 or 3 into the DeepSpeed file")),
        "`full_shard` 3, `shard_grad_op` 2, `no_shard` 1",
    ),
    in_file(
        _F + "cpu_offload",
        "zero_optimization.offload_param",
        _of_fsdp(offload("offload_param", "offload_optimizer")),
        "the optimizer goes with it",
    ),
    in_file(_F + "gradient_checkpointing", "activation_checkpointing", _of_fsdp(checkpointing)),
    *nothing(_F + "offload_pin_memory", "what is offloaded is pinned"),
    *nothing(_F + "use_liger_kernel", "layers are compiled under ZeRO 1 and 2, and screenshots have a kernel of their own"),
    *nothing(_F + "enable_gradient_accumulation", "gradients of a step's micro-batches are always added up"),
    *(
        in_file(_F + name, "bf16 or fp16", _of_fsdp(_precision), "of computing; with fp16 policies answer in it too")
        for name in ("mixed_precision.param_dtype", "amp_autocast.precision")
    ),
    *nothing(_F + "amp_autocast.enabled", "`amp_autocast.precision` counts where it is true"),
    *nothing(
        under(_F[:-1], "mixed_precision.reduce_dtype mixed_precision.buffer_dtype"),
        "gradients are summed in the precision of the DeepSpeed file",
    ),
    *nothing(
        under(_F[:-1], "grad_scaler.enabled grad_scaler.init_scale grad_scaler.growth_interval"),
        "losses are scaled in fp16, and a step that overflows is made again",
    ),
    *nothing(
        under(
            _F[:-1],
            "strategy reshard_after_forward forward_prefetch limit_all_gathers backward_prefetch use_orig_params fsdp_size",
        ),
        _FSDP,
    ),
    *nothing(_F + "*", _FSDP),
)
_REST: tuple[Row, ...] = (
    *nothing(
        under(_T[:-1], "tokenizer_model tokenizer_type extra_vocab_size use_fast trust_remote_code padding_side"),
        "the tokenizer is the model's own",
    ),
    *nothing(
        under(
            "actor.megatron",
            "ddp_bucket_size distributed_backend distributed_timeout_minutes ckpt_format use_dist_ckpt "
            "tp_comm_bootstrap_backend tp_comm_overlap_cfg use_hf_ckpt use_profiler profiler.* ckpt.model ckpt.hf_model_path "
            "ckpt.save_path ckpt.use_gpu_num ckpt.use_gpu_index ckpt.process_num ckpt.tensor_model_parallel_size "
            "ckpt.pipeline_model_parallel_size ckpt_convertor.*",
        ),
        _MEGATRON,
    ),
    *nothing("actor.megatron.*", _MEGATRON),
)
ACTOR = (*_TRAINING, *_FSDP_ROWS, *_MODEL, *_OPTIMIZER, *_REST)

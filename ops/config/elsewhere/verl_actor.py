"""verl's keys of the model and its training."""

from ops.config.elsewhere import divergence, rates
from ops.config.elsewhere import measures as count
from ops.config.elsewhere import objective as aim
from ops.config.elsewhere.conversions import (
    KL_TYPES,
    LORA_RANKS,
    TRAJECTORIES,
    adam_betas,
    adapter_layers,
    as_number,
    as_text,
    as_whole,
    checkpointing,
    choice,
    offload,
    only_with,
    precision,
    with_adapters,
    zero_stage,
)
from ops.config.elsewhere.row import Row, in_file, instead, nothing, ours, same, under

_M = "actor_rollout_ref.model."
_A = "actor_rollout_ref.actor."
_NO_SPLIT = "a sequence is computed by one rank; `millrace plan` says whether it fits"
_OWN_GPUS = "the trainer has GPUs of its own, so nothing is moved to make room for the policy"
_FUSED = "layers are compiled under ZeRO 1 and 2, and screenshots have a kernel of their own"
_PACKED = "sequences are packed without padding"
_NO_MEGATRON = "leave it out: training is by DeepSpeed's ZeRO"
_FSDP = "DeepSpeed's ZeRO divides the model"
_SCHEDULES = {"constant": "constant_with_warmup", "cosine": "cosine", "linear": "linear"}


_MODEL: tuple[Row, ...] = (
    ours(_M + "path", "policy_config.base_model", "a folder, or a name of the hub", as_text),
    in_file(
        _M + "enable_gradient_checkpointing",
        "activation_checkpointing",
        checkpointing,
        default=True,
    ),
    ours(LORA_RANKS[0], "trainer_config.lora.rank", "0: no adapters", as_whole),
    ours(_M + "lora_alpha", "trainer_config.lora.alpha", "", with_adapters(as_whole, LORA_RANKS[0]), default=16),
    ours(_M + "lora.rank", "trainer_config.lora.rank", "0: no adapters", as_whole),
    ours(_M + "lora.alpha", "trainer_config.lora.alpha", "", with_adapters(as_whole, LORA_RANKS[2]), default=32),
    *nothing(_M + "lora.lora_A_init_method", "adapters begin as PEFT begins them"),
    ours(
        _M + "target_modules",
        "trainer_config.lora.targets",
        "`all-linear`: those of the language model",
        with_adapters(adapter_layers, *LORA_RANKS),
    ),
    *instead(_M + "exclude_modules", "write the layers that have adapters for trainer_config.lora.targets"),
    *instead(
        _M + "lora_adapter_path", "merge the adapter into its model, and write that model for policy_config.checkpoint_path"
    ),
    same(
        _M + "enable_activation_offload",
        False,
        "layers keep their inputs on the GPU",
        "leave it out: a layer keeps its input on the GPU; the DeepSpeed file can offload optimizer and parameters",
    ),
    *nothing(under(_M[:-1], "use_remove_padding"), _PACKED),
    *nothing(under(_M[:-1], "use_liger use_fused_kernels fused_kernel_options.* tiled_mlp.*"), _FUSED),
    same(
        _M + "trust_remote_code",
        False,
        "no code of a model's folder is run",
        "leave it out: no code of a model's folder is run",
    ),
    *nothing(
        under(_M[:-1], "tokenizer_path hf_config_path custom_chat_template use_shm"),
        "tokenizer and template are the model's own",
    ),
    *instead(under(_M[:-1], "override_config override_config.* external_lib"), "change the model's own folder"),
    *nothing(_M + "torch_dtype", "the DeepSpeed file says in which precision is trained"),
    *nothing(under(_M[:-1], "mtp.* mtp"), "only the sampled tokens are trained"),
)
_ACTOR: tuple[Row, ...] = (
    in_file(
        _A + "strategy",
        "zero_optimization.stage",
        zero_stage({"fsdp": 3, "fsdp2": 3}, _NO_MEGATRON),
        "FSDP divides everything, as stage 3 does; 1 or 2 are faster where the model fits",
        default="fsdp",
    ),
    ours(_A + "optim.lr", "algorithm_config.learning_rate", "", as_number),
    ours(
        _A + "optim.lr_warmup_steps",
        "algorithm_config.warmup_steps",
        "counts iterations there, optimizer steps here",
        rates.warmup_iterations,
    ),
    ours(
        _A + "optim.lr_warmup_steps_ratio",
        "algorithm_config.warmup_steps",
        "a share of all optimizer steps: times their number",
        rates.warmup_share,
        default=0.0,
    ),
    *(
        ours(
            _A + f"optim.{name}",
            "algorithm_config.lr_scheduler_type",
            "a falling one needs its length",
            rates.schedule(_SCHEDULES),
        )
        for name in ("lr_scheduler_type", "warmup_style")
    ),
    ours(_A + "optim.min_lr_ratio", "algorithm_config.min_lr_ratio", "of a falling rate", as_number),
    ours(_A + "optim.weight_decay", "algorithm_config.weight_decay", "", as_number),
    ours(_A + "optim.betas", "algorithm_config.adam_beta2", "the second; the first is 0.9 here", adam_betas),
    ours(_A + "optim.clip_grad", "algorithm_config.max_grad_norm", "", as_number),
    ours(_A + "grad_clip", "algorithm_config.max_grad_norm", "", as_number),
    *nothing(under(_A[:-1], "optim.total_training_steps optim.num_cycles grad_norm_threshold"), "the run's own number counts"),
    same(_A + "optim.optimizer", ("AdamW", "adamw"), "the optimizer is AdamW", "leave it out: the optimizer is AdamW"),
    *nothing(
        under(_A[:-1], "optim.optimizer_impl optim.override_optimizer_config optim.override_optimizer_config.*"),
        "the optimizer is torch's AdamW",
    ),
    ours(
        _A + "ppo_mini_batch_size",
        "algorithm_config.gradient_accumulation_steps",
        "counts trajectories there, steps here: times the cap of steps, divided by micro-batch and ranks",
        count.accumulation,
        default=256,
    ),
    ours(
        _A + "ppo_micro_batch_size_per_gpu",
        "algorithm_config.per_device_train_batch_size",
        "a sample is one step of an episode",
        as_whole,
    ),
    *instead(_A + "ppo_micro_batch_size", "write algorithm_config.per_device_train_batch_size: it counted all GPUs"),
    ours(
        _A + "ppo_max_token_len_per_gpu",
        "algorithm_config.max_tokens_per_micro_batch",
        "only where `use_dynamic_bsz` is true",
        only_with(_A + "use_dynamic_bsz", as_whole),
    ),
    *nothing(_A + "use_dynamic_bsz", "ppo_max_token_len_per_gpu counts where it is true"),
    ours(_A + "ppo_epochs", "algorithm_config.num_train_epochs", "", as_whole, default=1),
    ours(_A + "clip_ratio_low", "objective_config.clip_ratio_low", "", as_number),
    ours(_A + "clip_ratio_high", "objective_config.clip_ratio_high", "", as_number),
    ours(
        _A + "clip_ratio",
        ("objective_config.clip_ratio_low", "objective_config.clip_ratio_high"),
        "both, where they are not written",
        aim.clip_ratio,
    ),
    ours(_A + "clip_ratio_c", "objective_config.clip_ratio_c", "0: off", as_number, default=3.0),
    ours(
        _A + "policy_loss.loss_mode",
        "objective_config.loss_type",
        "`vanilla` is `clipped`, and `truncated` with `rollout_is`; `gpg` is `reinforce`",
        aim.loss,
        default="vanilla",
    ),
    *nothing(_A + "policy_loss.*", "no loss of Millrace has it; one of your own reads objective_config.settings"),
    *nothing(under(_A[:-1], "tau_pos tau_neg"), "of `sapo`, which is not here"),
    ours(
        _A + "loss_agg_mode",
        "objective_config.loss_agg_mode",
        "a sequence there is a whole episode: `seq-…` is `traj-…`",
        choice(TRAJECTORIES, "write one of token-mean and traj-mean-… for objective_config.loss_agg_mode"),
    ),
    ours(_A + "loss_scale_factor", "objective_config.loss_scale_factor", "of `...-norm`", as_number),
    ours(_A + "entropy_coeff", "objective_config.entropy_coeff", "", as_number),
    ours(
        _A + "use_kl_loss",
        "objective_config.kl_loss_coef",
        "false: 0; true: `kl_loss_coef`",
        divergence.switch(_A + "kl_loss_coef"),
    ),
    ours(
        _A + "kl_loss_coef",
        "objective_config.kl_loss_coef",
        "only where `use_kl_loss` is true",
        only_with(_A + "use_kl_loss", as_number),
        default=0.001,
    ),
    ours(
        _A + "kl_loss_type",
        "objective_config.kl_loss_type",
        "`k1` is `kl`, `k2` is `mse`, `k3` is `low_var_kl`",
        only_with(_A + "use_kl_loss", choice(KL_TYPES, "write kl, abs, mse or low_var_kl for objective_config.kl_loss_type")),
    ),
    *nothing(_A + "calculate_entropy", "entropy is told where objective_config.entropy_coeff asks for it"),
    ours(_A + "data_loader_seed", "trainer_config.seed", "", as_whole),
    same(
        _A + "shuffle", True, "samples are trained on in random order", "leave it out: samples are trained on in random order"
    ),
    same(
        _A + "freeze_vision_tower",
        False,
        "the whole model is trained",
        "write trainer_config.lora.rank: adapters are on the language model alone",
    ),
    in_file(
        _A + "fsdp_config.param_offload",
        "zero_optimization.offload_param",
        offload("offload_param"),
        "during training too, which is slower: leave it out where memory allows (`millrace plan`)",
    ),
    in_file(
        _A + "fsdp_config.optimizer_offload",
        "zero_optimization.offload_optimizer",
        offload("offload_optimizer"),
        "during training too, which is slower: leave it out where memory allows (`millrace plan`)",
    ),
    in_file(
        _A + "fsdp_config.offload_policy", "zero_optimization.offload_param", offload("offload_param", "offload_optimizer")
    ),
    in_file(_A + "fsdp_config.dtype", "bf16 or fp16", precision),
    *nothing((_A + "fsdp_config.model_dtype",), "the optimizer keeps its weights in float32"),
    *nothing(_A + "fsdp_config.*", _FSDP),
    *nothing(
        under(_A[:-1], "ulysses_sequence_parallel_size entropy_from_logits_with_chunking entropy_checkpointing"), _NO_SPLIT
    ),
    *nothing(under(_A[:-1], "use_torch_compile use_fused_kernels use_prefix_grouper"), _FUSED),
    *nothing(_A + "use_remove_padding", _PACKED),
    *nothing(under(_A[:-1], "calculate_sum_pi_squared sum_pi_squared_checkpointing"), "no baseline asks for it"),
    *nothing(_A + "checkpoint.*", "a version has weights, optimizer and position; trainer_config.save_every says how often"),
    *nothing(_A + "router_replay.*", "experts are routed anew in training"),
    *nothing(under(_A[:-1], "rollout_n profiler.* profile.*"), "nothing reads it here"),
    *instead(_A + "megatron.*", _NO_MEGATRON),
    *nothing(("actor_rollout_ref.hybrid_engine", "actor_rollout_ref.nccl_timeout"), _OWN_GPUS),
)
ACTOR = (*_MODEL, *_ACTOR)

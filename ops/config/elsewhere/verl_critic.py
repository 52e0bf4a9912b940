"""verl's keys of reference and critic."""

from ops.config.elsewhere import objective as aim
from ops.config.elsewhere.row import Row, instead, nothing, ours, same, under

_M = "actor_rollout_ref.model."
_A = "actor_rollout_ref.actor."
_F = "actor_rollout_ref.ref."
_C = "critic."
_NO_SPLIT = "a sequence is computed by one rank; `millrace plan` says whether it fits"
_PACKED = "sequences are packed without padding"
_REFERENCE = "the reference is sharded and offloaded as the policy's DeepSpeed file says"
_IN_PARTS = "log-probabilities are computed in the micro-batches of training"


_REF: tuple[Row, ...] = (
    *instead(_F + "model.path", "write the folder for objective_config.reference_model"),
    *nothing((_F + "fsdp_config.param_offload", _F + "fsdp_config.*", _F + "strategy"), _REFERENCE),
    *nothing(
        under(
            _F[:-1],
            "log_prob_micro_batch_size log_prob_micro_batch_size_per_gpu log_prob_use_dynamic_bsz "
            "log_prob_max_token_len_per_gpu",
        ),
        _IN_PARTS,
    ),
    *nothing(_F + "ulysses_sequence_parallel_size", _NO_SPLIT),
    *nothing(_F + "*", _REFERENCE),
)
_CRITIC: tuple[Row, ...] = (
    ours(_C + "optim.lr", "objective_config.critic.learning_rate", "", aim.of_the_critic),
    ours(_C + "cliprange_value", "objective_config.critic.value_clip", "", aim.of_the_critic, default=0.5),
    ours(
        _C + "model.path",
        "policy_config.base_model",
        "the critic begins as the policy does",
        aim.as_the_policy(_M + "path", "agent.init_config.model_name_or_path"),
    ),
    ours(
        _C + "ppo_mini_batch_size",
        "algorithm_config.gradient_accumulation_steps",
        "the policy's",
        aim.as_the_policy(_A + "ppo_mini_batch_size"),
    ),
    ours(
        _C + "ppo_micro_batch_size_per_gpu",
        "algorithm_config.per_device_train_batch_size",
        "the policy's",
        aim.as_the_policy(_A + "ppo_micro_batch_size_per_gpu"),
    ),
    ours(_C + "ppo_epochs", "algorithm_config.num_train_epochs", "the policy's", aim.as_the_policy(_A + "ppo_epochs")),
    ours(_C + "grad_clip", "algorithm_config.max_grad_norm", "the policy's", aim.as_the_policy(_A + "grad_clip")),
    ours(
        _C + "optim.weight_decay",
        "algorithm_config.weight_decay",
        "the policy's",
        aim.as_the_policy(_A + "optim.weight_decay"),
    ),
    ours(
        _C + "optim.lr_warmup_steps_ratio",
        "algorithm_config.warmup_steps",
        "the policy's",
        aim.as_the_policy(_A + "optim.lr_warmup_steps_ratio"),
    ),
    ours(
        _C + "model.enable_gradient_checkpointing",
        "algorithm_config.deepspeed_config_filename",
        "the policy's",
        aim.as_the_policy(_M + "enable_gradient_checkpointing"),
    ),
    *(
        ours(
            _C + f"model.fsdp_config.{name}",
            "algorithm_config.deepspeed_config_filename",
            "the policy's",
            aim.as_the_policy(_A + f"fsdp_config.{name}"),
        )
        for name in ("param_offload", "optimizer_offload")
    ),
    *nothing(_C + "model.use_remove_padding", _PACKED),
    *nothing(_C + "enable", "`gae`, `bi_level_gae` and `turn_gae` have a critic, the others none"),
    same(
        _C + "loss_agg_mode",
        "token-mean",
        "the critic's loss is a token-mean",
        "leave it out: the critic's loss is a token-mean",
    ),
    *nothing(
        (_C + "model.enable_activation_offload", _C + "*"),
        "it is trained as the policy is, by the same DeepSpeed file",
    ),
)
CRITIC = (*_REF, *_CRITIC)

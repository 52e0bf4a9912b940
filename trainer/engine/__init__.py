"""The training engine: policy, critic and reference on DeepSpeed, one process or many."""

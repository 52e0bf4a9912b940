"""`millrace gpu-check`: what a model comes to on this machine's GPUs, part by part, before a run is begun.

Each part is a process of its own, for vLLM and DeepSpeed change theirs; it reads and writes JSON in one folder. On a machine
without a GPU the same is done on its processor, with a tiny model unless another is named.
"""

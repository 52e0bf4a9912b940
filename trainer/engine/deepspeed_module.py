"""DeepSpeed as it is imported here: quietly, for the device that there is; and what is left of its engines let go of."""

import gc
import os
import warnings
from types import ModuleType

import torch


def import_deepspeed() -> ModuleType:
    if not torch.cuda.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import deepspeed
        import deepspeed.ops
    # Compiled at run time otherwise; a process killed meanwhile leaves a lock on which the next one hangs silently.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    module: ModuleType = deepspeed
    return module


def forget_engines() -> None:
    """Frees the memory of engines that were closed and that nobody has any more, before another one is opened."""
    import_deepspeed()
    from deepspeed.runtime.zero.parameter_offload import FWD_MODULE_STACK

    FWD_MODULE_STACK.clear()  # where ZeRO-3 keeps the model of every engine
    gc.collect()  # DeepSpeed's engine, its optimizer and their hooks have each other
    torch.cuda.empty_cache()

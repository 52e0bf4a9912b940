"""DeepSpeed as it is imported here: quietly, for the device that there is."""

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

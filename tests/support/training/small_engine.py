"""What an engine of one rank writes whose model has one parameter."""

from dataclasses import dataclass
from pathlib import Path

import torch

from trainer.model.tensor_files import write_tensors, write_weights


@dataclass(frozen=True, eq=False)
class SmallEngine:
    """An `EngineFiles`."""

    num_updates: int
    weight: torch.Tensor

    def write(self, folder: Path) -> None:
        write_weights(folder, [{"a.weight": self.weight}])
        counts = {name: torch.tensor(self.num_updates) for name in ("num_updates", "num_steps")}
        held = {**counts, "loss_scale": torch.tensor([]), "exp_avg.a.weight@0": torch.ones(4)}
        write_tensors(folder / "trainer", "optimizer-rank00000", [held])

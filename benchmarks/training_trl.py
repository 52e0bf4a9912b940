"""TRL's side of `benchmarks.training_speed`: its GRPOTrainer, given samples where it would sample; prints a `Run` as JSON."""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForImageTextToText, AutoProcessor, PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.training_hugging_face import IGNORED, Clock, encode
from benchmarks.training_speed import BATCH, LEARNING_RATE, NUM_SAMPLES, WARM_UP_STEPS, Run, advantage
from ops.gpu_check.drawn_pages import demonstrations

Sample = dict[str, torch.Tensor]


class Collator:
    """Prompts padded on their left, completions on their right, as TRL has them after sampling."""

    def __init__(self, padding_token: int) -> None:
        self._padding = padding_token

    def __call__(self, samples: list[tuple[int, Sample]]) -> dict[str, Any]:
        prompts, completions, types = [], [], []
        for _, sample in samples:
            is_prompt = sample["labels"] == IGNORED
            prompts.append(sample["input_ids"][is_prompt])
            completions.append(sample["input_ids"][~is_prompt])
            types.append(sample["mm_token_type_ids"][is_prompt])
        prompt_ids, prompt_mask = self._padded(prompts, "left")
        completion_ids, completion_mask = self._padded(completions, "right")
        kinds = torch.nn.utils.rnn.pad_sequence(types, batch_first=True, padding_side="left")
        return {
            "first": samples[0][0],
            "prompt_ids": prompt_ids,
            "prompt_mask": prompt_mask,
            "completion_ids": completion_ids,
            "completion_mask": completion_mask,
            "mm_token_type_ids": torch.cat([kinds, torch.zeros_like(completion_ids)], dim=1),
            "pixel_values": torch.cat([sample["pixel_values"] for _, sample in samples]),
            "image_grid_thw": torch.cat([sample["image_grid_thw"] for _, sample in samples]),
            "num_images": [1] * len(samples),
            "advantages": torch.tensor([advantage(index) for index, _ in samples]),
            "num_items_in_batch": completion_mask.sum(),
        }

    def _padded(self, rows: list[torch.Tensor], side: str) -> tuple[torch.Tensor, torch.Tensor]:
        pad = torch.nn.utils.rnn.pad_sequence
        ids = pad(rows, batch_first=True, padding_value=self._padding, padding_side=side)
        return ids, pad([torch.ones_like(row) for row in rows], batch_first=True, padding_side=side)


class GivenSamples(GRPOTrainer):  # type: ignore[misc]
    """Trains on the samples in their order, in place of sampling any."""

    samples: list[Sample]
    collator: Collator
    old: dict[int, torch.Tensor]

    def get_train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(cast(Any, list(enumerate(self.samples))), batch_size=BATCH, collate_fn=self.collator)

    def _prepare_inputs(self, generation_batch: dict[str, Any]) -> dict[str, Any]:
        return {**generation_batch, "old_per_token_logps": self.old[generation_batch.pop("first")]}

    def look(self) -> None:
        """What the policy at the beginning says of every sample."""
        self.old = {}
        for batch in self.get_train_dataloader():
            with torch.no_grad():
                found, *_ = self._get_per_token_logps_and_entropies(
                    self.model,
                    torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
                    torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
                    batch["completion_ids"].shape[1],
                    pixel_values=batch["pixel_values"],
                    image_grid_thw=batch["image_grid_thw"],
                    num_images=batch["num_images"],
                    mm_token_type_ids=batch["mm_token_type_ids"],
                )
            self.old[batch["first"]] = found


def train(folder: Path, *, threads: int, steps: int) -> Run:
    torch.set_num_threads(threads)
    processor = AutoProcessor.from_pretrained(folder)
    samples = [encode(processor, shown) for shown in demonstrations(NUM_SAMPLES)]
    clock = Clock()
    with tempfile.TemporaryDirectory() as output:
        arguments = GRPOConfig(
            output_dir=output,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            per_device_train_batch_size=BATCH,
            num_generations=2,
            beta=0.0,
            epsilon=0.2,
            loss_type="bnpo",
            temperature=1.0,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="constant",
            optim="adamw_torch_fused",
            weight_decay=0.01,
            max_grad_norm=1.0,
            max_steps=WARM_UP_STEPS + steps,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = GivenSamples(
            model=AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32),
            args=arguments,
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            train_dataset=Dataset.from_dict({"prompt": ["not sampled"] * NUM_SAMPLES}),
            processing_class=processor,
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.samples, trainer.collator = samples, Collator(processor.tokenizer.pad_token_id)
        trainer.look()
        trainer.train()
    timed = [samples[index % NUM_SAMPLES] for index in range(WARM_UP_STEPS * BATCH, (WARM_UP_STEPS + steps) * BATCH)]
    return Run(
        tokens=sum(len(sample["input_ids"]) for sample in timed),
        completion_tokens=sum(int((sample["labels"] != IGNORED).sum()) for sample in timed),
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        losses=[entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("threads", type=int)
    parser.add_argument("steps", type=int)
    options = parser.parse_args()
    print(json.dumps(asdict(train(options.model, threads=options.threads, steps=options.steps))))


if __name__ == "__main__":
    main()

"""Hugging Face's side of `benchmarks.training_speed`: its Trainer, model and processor unchanged; prints a `Run` as JSON."""

import argparse
import io
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import SequentialSampler
from transformers import (
    AutoModelForImageTextToText,
    AutoProcessor,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from benchmarks.training_speed import BATCH, LEARNING_RATE, NUM_SAMPLES, WARM_UP_STEPS, Run
from ops.gpu_check.drawn_pages import Demonstration, demonstrations
from trainer.model.model_folder import suppressed_tokens

IGNORED = -100
"""Label of a token that is not trained on."""


def encode(processor: Any, shown: Demonstration) -> dict[str, torch.Tensor]:
    """One sample by the processor's normal path: the prompt is masked out of the labels."""
    screenshot = Image.open(io.BytesIO(shown.screenshot.data)).convert("RGB")
    asked = [
        {"role": "system", "content": shown.system},
        {"role": "user", "content": [{"type": "text", "text": f"Task: {shown.instruction}\n"}, {"type": "image"}]},
    ]
    prompt = processor.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    whole = processor(text=[prompt + shown.answer + processor.tokenizer.eos_token], images=[screenshot], return_tensors="pt")
    length = processor(text=[prompt], images=[screenshot], return_tensors="pt")["input_ids"].shape[1]
    labels = whole["input_ids"][0].clone()
    labels[:length] = IGNORED
    return {
        "input_ids": whole["input_ids"][0],
        "mm_token_type_ids": whole["mm_token_type_ids"][0],
        "pixel_values": whole["pixel_values"],
        "image_grid_thw": whole["image_grid_thw"],
        "labels": labels,
    }


class Collator:
    """Pads to the longest of the batch."""

    def __init__(self, padding_token: int) -> None:
        self._padding = {"input_ids": padding_token, "mm_token_type_ids": 0, "labels": IGNORED}

    def __call__(self, samples: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        batch = {
            key: torch.nn.utils.rnn.pad_sequence([sample[key] for sample in samples], batch_first=True, padding_value=value)
            for key, value in self._padding.items()
        }
        lengths = torch.tensor([len(sample["input_ids"]) for sample in samples])
        batch["attention_mask"] = (torch.arange(batch["input_ids"].shape[1])[None] < lengths[:, None]).long()
        for key in ("pixel_values", "image_grid_thw"):
            batch[key] = torch.cat([sample[key] for sample in samples])
        return batch


class OrderedTrainer(Trainer):  # type: ignore[misc]
    """Takes the samples in their order."""

    def _get_train_sampler(self, *_: Any, **__: Any) -> Any:
        return SequentialSampler(self.train_dataset)


class Clock(TrainerCallback):  # type: ignore[misc]
    """Starts after the warm-up."""

    began = cpu = seconds = cpu_seconds = 0.0

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step == WARM_UP_STEPS:
            self.began, self.cpu = time.perf_counter(), time.process_time()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.seconds, self.cpu_seconds = time.perf_counter() - self.began, time.process_time() - self.cpu


def without_control_tokens(folder: Path, seen: list[float]) -> Any:
    """The loss over the distribution that is sampled from, as Millrace trains on it; noted in `seen`, since logs round it."""
    suppressed = torch.tensor(suppressed_tokens(folder))

    def loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        logits = outputs.logits.float().index_fill(-1, suppressed, float("-inf"))[:, :-1]
        found = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED)
        seen.append(float(found.detach()))
        return found

    return loss


def train(folder: Path, *, threads: int, steps: int, curve: bool) -> Run:
    torch.set_num_threads(threads)
    processor = AutoProcessor.from_pretrained(folder)
    samples = [encode(processor, shown) for shown in demonstrations(NUM_SAMPLES)]
    clock = Clock()
    exact: list[float] = []
    with tempfile.TemporaryDirectory() as output:
        arguments = TrainingArguments(
            output_dir=output,
            use_cpu=True,
            per_device_train_batch_size=BATCH,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="constant",
            optim="adamw_torch_fused",
            weight_decay=0.01,
            max_grad_norm=1.0,
            max_steps=WARM_UP_STEPS + steps,
            logging_steps=1,
            logging_nan_inf_filter=False,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            remove_unused_columns=False,
        )
        trainer = OrderedTrainer(
            model=AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32),
            args=arguments,
            train_dataset=samples,
            data_collator=Collator(processor.tokenizer.pad_token_id),
            compute_loss_func=without_control_tokens(folder, exact) if curve else None,
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    timed = [samples[index % NUM_SAMPLES] for index in range(WARM_UP_STEPS * BATCH, (WARM_UP_STEPS + steps) * BATCH)]
    return Run(
        tokens=sum(len(sample["input_ids"]) for sample in timed),
        completion_tokens=sum(int((sample["labels"] != IGNORED).sum()) for sample in timed),
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        losses=exact if curve else losses,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("threads", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    run = train(options.model, threads=options.threads, steps=options.steps, curve=options.curve)
    print(json.dumps(asdict(run)))


if __name__ == "__main__":
    main()

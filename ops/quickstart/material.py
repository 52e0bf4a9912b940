"""The quickstart's material: task files whose pages never coincide, and the untrained model that reads them.

Made by a process of its own, `python -m ops.quickstart.material`, so that the terminal's needs neither torch nor a browser.
"""

import argparse
import sys
from pathlib import Path

from browser_workers.chromium.browser import PlaywrightBrowser
from ops.processes.interruptible import run
from ops.quickstart.button_material import button_material
from ops.quickstart.marks_material import marks_material
from ops.quickstart.page_seeds import PageSeeds
from ops.quickstart.recipe import FAMILIES, OBSERVE, Family, family_named
from ops.run.folder import RunFolder


async def make_material(folder: RunFolder, family: Family, seed: int) -> None:
    """Writes tasks/*.jsonl and model/."""
    config = folder.load()
    num_episodes = config.feeder_config.num_iterations * config.env_config.train_tasks_rollout_size
    seeds = PageSeeds.of_run(
        seed,
        num_demonstrations=family.num_demonstrations,
        num_train=family.num_train or num_episodes,
        num_held_out=family.num_held_out,
    )
    async with PlaywrightBrowser(config.browser_config, config.env_config, config.context_config) as browser:
        make = marks_material if family.observe == "marks" else button_material
        await make(browser, config, family, seeds, folder, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--family", choices=FAMILIES, required=True)
    parser.add_argument("--observe", choices=OBSERVE, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()

    async def body() -> int:
        await make_material(RunFolder(options.run_dir), family_named(options.family, options.observe), options.seed)
        return 0

    return run(body)


if __name__ == "__main__":
    sys.exit(main())

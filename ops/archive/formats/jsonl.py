"""JSON Lines: one object an episode with all its steps; screenshots are files beside, their paths relative to the folder."""

from typing import Any

import msgspec

from ops.archive.durable import make_folder
from ops.archive.exports.played import Played
from ops.archive.formats import FormatOptions, exporter
from ops.archive.screenshots import ScreenshotStore, screenshot_path
from schemas.messages import Observation, StepRequest


@exporter("jsonl")
class JsonLinesFormat:
    """Satisfies `Format`. Fields are those of the messages; fields that have their default value are left out."""

    def __init__(self, options: FormatOptions) -> None:
        self._options = options
        make_folder(options.folder / "screenshots")
        self._screenshots = ScreenshotStore(options.folder / "screenshots")
        self._file = (options.folder / "episodes.jsonl").open("wb")

    def add(self, played: Played) -> int:
        steps = [step for step in played.steps if self._options.wants(step)]
        judgement = msgspec.to_builtins(played.judgement) if played.judgement else None
        if judgement is not None:
            del judgement["trajectory"]  # it stands beside it
        episode = {
            "trajectory": msgspec.to_builtins(played.trajectory),
            "judgement": judgement,
            "steps": [
                {"observation": self._observation(step.observation), "request": _request(step.request)} for step in steps
            ],
            "last_seen": self._observation(played.last_seen) if played.last_seen else None,
        }
        self._file.write(msgspec.json.encode(episode) + b"\n")
        return len(steps)

    def _observation(self, observation: Observation) -> dict[str, Any]:
        screenshot = observation.screenshot
        without: dict[str, Any] = msgspec.to_builtins(
            msgspec.structs.replace(observation, screenshot=msgspec.structs.replace(screenshot, data=b""))
        )
        without["screenshot"] = {
            "path": f"screenshots/{screenshot_path(self._screenshots.put(screenshot))}",
            "media_type": screenshot.media_type,
            "width": screenshot.width,
            "height": screenshot.height,
        }
        return without

    def close(self) -> None:
        self._file.close()


def _request(request: StepRequest) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(request)
    return plain

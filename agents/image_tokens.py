"""How many tokens a model's screenshots have, by the settings of its image processor alone.

Invariant: as many as the model's own transformers processor makes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from schemas.errors import ConfigurationError
from schemas.messages import Screenshot

Settings = Mapping[str, Any]
"""Of an image processor, as its file has them."""


class ImageTokens(Protocol):
    @property
    def framing(self) -> tuple[str, ...]:
        """The token before them and the one behind them, where the processor puts these and no template does."""

    def count(self, screenshot: Screenshot) -> int:
        """Image tokens that stand for a screenshot."""


@dataclass(frozen=True, slots=True)
class ScaledGrid:
    """Sides become multiples of `cell`, the area stays between the bounds (Qwen's models, and GLM's)."""

    cell: int
    """Pixels of one image token's side: patch size times merge size."""
    min_pixels: int
    max_pixels: int
    frames: int = 1
    """As many times the area counts."""
    grows_sides: bool = False
    """A side shorter than `cell` is drawn out to it first, and the other with it."""
    framing: tuple[str, ...] = ()

    def count(self, screenshot: Screenshot) -> int:
        height, width = screenshot.height, screenshot.width
        if self.grows_sides and min(height, width) < self.cell:
            scale = self.cell / min(height, width)
            height, width = int(height * scale), int(width * scale)
        rows, columns = round(height / self.cell), round(width / self.cell)  # half to even, as the processor does
        area = self.frames * rows * columns * self.cell**2
        if area > self.max_pixels:
            shrink = math.sqrt(self.frames * height * width / self.max_pixels) * self.cell
            rows, columns = max(1, math.floor(height / shrink)), max(1, math.floor(width / shrink))
        elif area < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (self.frames * height * width)) / self.cell
            rows, columns = math.ceil(height * grow), math.ceil(width * grow)
        return rows * columns


@dataclass(frozen=True, slots=True)
class Tiles:
    """Square tiles whose arrangement comes closest to the screenshot's proportions, and one of the whole (InternVL)."""

    side: int
    """Of a tile, in pixels."""
    min_tiles: int
    max_tiles: int
    tokens: int
    """Of one tile."""
    framing: tuple[str, ...] = ("<img>", "</img>")

    def count(self, screenshot: Screenshot) -> int:
        tiles = self._num_tiles(screenshot.width, screenshot.height)
        return self.tokens * (tiles + 1 if tiles > 1 else 1)

    def _num_tiles(self, width: int, height: int) -> int:
        best, nearest = 1, math.inf
        for columns, rows in self._arrangements():
            distance = abs(width / height - columns / rows)
            # Of arrangements in the same proportions the largest that is not twice as large as the screenshot.
            if distance < nearest or (distance == nearest and 2 * width * height > self.side**2 * columns * rows):
                best, nearest = columns * rows, distance
        return best

    def _arrangements(self) -> list[tuple[int, int]]:
        """Columns and rows, by their number of tiles."""
        sides = range(1, self.max_tiles + 1)
        found = [(columns, rows) for columns in sides for rows in sides if self.min_tiles <= columns * rows <= self.max_tiles]
        return sorted(found, key=math.prod)


def image_tokens(settings: Settings, tokens_a_tile: int) -> ImageTokens:
    """How the image processor of these settings does it.

    Args:
        tokens_a_tile: as the whole processor's settings say; looked at for tiles alone.

    Raises:
        ConfigurationError: of a kind that nothing is known of.
    """
    name = str(settings.get("image_processor_type", "")).removesuffix("Fast").removesuffix("Pil")
    if name not in _READERS:
        raise ConfigurationError(
            f"screenshots of a model whose image processor is a {name or 'nameless one'} cannot be counted in tokens: "
            f"policy_config.base_model must be a model with one of {', '.join(sorted(_READERS))} (docs/your_own_run.md)"
        )
    return _READERS[name](settings, tokens_a_tile)


def _qwen(settings: Settings, _: int) -> ImageTokens:
    size = settings.get("size") or {}
    return ScaledGrid(
        cell=settings["patch_size"] * settings["merge_size"],
        min_pixels=settings.get("min_pixels") or size["shortest_edge"],
        max_pixels=settings.get("max_pixels") or size["longest_edge"],
    )


def _glm(settings: Settings, _: int) -> ImageTokens:
    return ScaledGrid(
        cell=settings["patch_size"] * settings["merge_size"],
        min_pixels=settings["size"]["shortest_edge"],
        max_pixels=settings["size"]["longest_edge"],
        frames=settings["temporal_patch_size"],
        grows_sides=True,
    )


def _intern(settings: Settings, tokens_a_tile: int) -> ImageTokens:
    return Tiles(
        side=settings["size"]["height"],
        min_tiles=settings.get("min_patches", 1),
        max_tiles=settings.get("max_patches", 12),
        tokens=tokens_a_tile,
    )


_READERS: Final[Mapping[str, Callable[[Settings, int], ImageTokens]]] = {
    "Qwen2VLImageProcessor": _qwen,
    "Glm4vImageProcessor": _glm,
    "GotOcr2ImageProcessor": _intern,
}

"""Many dots as an image: a vector mark costs a hundred bytes of a page, a pixel a few bits."""

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

DENSITY = 200 / 72
"""Pixels per point, the resolution of print."""
LEVELS = 32
"""Levels of opacity."""


def dots_as_image(
    at: tuple[NDArray[np.float64], NDArray[np.float64]],
    extent: tuple[float, float],
    size: float,
    color: str,
    alpha: float,
) -> str:
    """Draw round translucent dots.

    Parameters
    ----------
    at
        Positions: x (n,) and y (n,) [points from the upper left].
    extent
        Width and height of the image [points]; dots outside are left out.
    size
        Diameter [points].
    color, alpha
        "#rrggbb", and the opacity of one dot.

    Returns
    -------
    str
        The image as a data URL.
    """
    width, height = (max(int(np.ceil(length * DENSITY)), 1) for length in extent)
    column, row = (np.floor(coordinates * DENSITY).astype(int) for coordinates in at)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    pixel, count = np.unique(row[inside] * width + column[inside], return_counts=True)
    through = np.zeros(width * height)
    # The transparency of overlapping dots multiplies: a sum of logarithms.
    for right, down, cover in _stamp(size * DENSITY / 2):
        to_column, to_row = pixel % width + right, pixel // width + down
        visible = (to_column >= 0) & (to_column < width) & (to_row >= 0) & (to_row < height)
        through[(to_row * width + to_column)[visible]] += count[visible] * np.log1p(-alpha * cover)
    opacity = np.rint((1 - np.exp(through)) * (LEVELS - 1)).astype(np.uint8)
    return png(opacity.reshape(height, width), color)


def _stamp(radius: float) -> list[tuple[int, int, float]]:
    """Return the pixels of a dot around its centre: (right, down, covered share of the pixel)."""
    reach = int(np.ceil(radius))
    fine = (np.arange(8) + 0.5) / 8 - 0.5
    covered = []
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            share = np.mean((right + fine) ** 2 + (down + fine)[:, None] ** 2 <= radius**2)
            if share > 0:
                covered.append((right, down, min(float(share), 0.999)))
    return covered


def png(opacity: NDArray[np.uint8], color: str) -> str:
    """Return an image of one colour in `LEVELS` of opacity (height, width), as a data URL.

    **Source** PNG (W3C Recommendation, third edition), §11: IHDR, PLTE, tRNS, IDAT, IEND.
    """
    height, width = opacity.shape
    red_green_blue = bytes(int(color[i : i + 2], 16) for i in (1, 3, 5))
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each begins with its filter: none
    rows[:, 1:] = opacity
    transparency = np.rint(np.linspace(0, 255, LEVELS)).astype(np.uint8).tobytes()
    content = b"\x89PNG\r\n\x1a\n" + b"".join((
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", red_green_blue * LEVELS),
        _chunk(b"tRNS", transparency),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)),
        _chunk(b"IEND", b""),
    ))  # fmt: skip
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

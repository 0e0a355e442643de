"""Colours and markers: a pattern looks the same in every figure, tile and table.

Reads are blue and writes orange, sequential dark and random bright. The two hues differ for every
common colour-vision deficiency, the two shades of a hue by lightness, and all four in black and
white by their markers. On white every colour has a contrast of at least 3 : 1.

Colours are defined for the light page. In SVG they become CSS variables with these values as
fallback, so that a figure follows the page's dark theme and is correct when it is cut out of it.
"""

from dataclasses import dataclass

from uflip.results.causes import BLOCK, CAUSES


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a pattern; `dot` suits light and dark, for images with fixed colours."""

    variable: str
    color: str
    dark: str
    dot: str
    marker: str


PATTERNS: dict[str, Look] = {
    "SR": Look("sr", "#005a96", "#5aa9e6", "#1f7fc0", "o"),
    "RR": Look("rr", "#2a93d1", "#a6d8fa", "#2a93d1", "s"),
    "SW": Look("sw", "#c07f00", "#f3ba3b", "#c07f00", "^"),
    "RW": Look("rw", "#b3400a", "#ff8a54", "#d55e00", "D"),
}

INK = "#1c1d1f"
MUTED = "#5b5f66"
GRID = "#e3e4e8"
CARD = "#fefefe"
SHADE = "#f1f1f4"

MANY = tuple(cause.color for cause in BLOCK)
"""Distinct colours: Okabe and Ito's palette, darkened where it is too light for a white background,
and then dark and pale ones."""


def activity(cause: str) -> str:
    """Return the colour of a cause column; the muted colour for an unknown one.

    Examples
    --------
    >>> activity("erase_ns") == activity("cell_erase_ns"), activity("erase_ns")
    (True, '#1f3552')
    """
    known = CAUSES.get(cause)
    return known.color if known else MUTED


def paler(color: str, by: float) -> str:
    """Return a colour "#rrggbb" mixed with white.

    Examples
    --------
    >>> paler("#000000", 0.5)
    '#808080'
    """
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(each + (255 - each) * by):02x}" for each in parts)


_NEUTRALS = {
    INK: ("ink", "#e8e9ec"),
    MUTED: ("muted", "#a3a8b0"),
    GRID: ("grid", "#33373d"),
    CARD: ("card", "#191c20"),
    SHADE: ("shade", "#22262b"),
}

# Light colour → (CSS variable, dark colour).
THEME: dict[str, tuple[str, str]] = {
    **{look.color: (look.variable, look.dark) for look in PATTERNS.values()},
    **_NEUTRALS,
}

OTHER = Look("ink", INK, _NEUTRALS[INK][1], "#808080", "o")


def look(pattern: str) -> Look:
    """Return the look of a pattern; ink for a mix or an unknown one."""
    return PATTERNS.get(pattern, OTHER)


def readable_on(color: str) -> str:
    """Return black or white, whichever is easier to read on a colour "#rrggbb".

    Examples
    --------
    >>> readable_on("#e69f00"), readable_on("#33373d")
    ('#000000', '#ffffff')
    """
    linear = [(int(color[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.18 else "#ffffff"

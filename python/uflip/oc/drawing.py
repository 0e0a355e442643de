"""Single figures of uFLIP-OC for papers; see `uflip.report.figures.paper`."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from uflip.microbench.open_channel.oc2 import KINDS
from uflip.oc import figures
from uflip.oc.kept import OpenChannelResult
from uflip.report.figures.chart import Chart
from uflip.report.figures.matplotlib_chart import figure_of
from uflip.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[], "Figure"]


def kinds_of(results: Results) -> dict[str, Draw]:
    """Return the figures of a result: kind -> a function that draws it."""
    found, simulated = OpenChannelResult(results).measured, results.manifest.device.simulated
    charts: dict[str, Callable[[], Chart]] = {}
    if (alone := found.oc0) is not None:
        titles = {mix: mix for mix in alone.mixes}
        charts["bands"] = lambda: figures.bands(alone.mixes, titles, simulated=simulated)
        charts["luns"] = lambda: figures.heat_map(
            alone.write_mb_per_s, alone.read_mb_per_s, simulated=simulated
        )
    if (worn := found.oc1) is not None:
        charts["wear"] = lambda: figures.wear(worn, simulated=simulated)
    if (scaled := found.oc2) is not None:
        panels = [("writes", list(KINDS)[:2]), ("reads", list(KINDS)[2:])]
        charts["channel"] = lambda: figures.scalings(scaled, panels=panels, simulated=simulated)
    if (wide := found.oc3) is not None:
        ways = [(word, [f"{word}, vectors", f"{word}, threads"]) for word in ("writes", "reads")]
        charts["channels"] = lambda: figures.scalings(
            wide.scaling, panels=ways, simulated=simulated
        )
        shares = {share: share for share in wide.mixes}
        charts["writers"] = lambda: figures.bands(wide.mixes, shares, simulated=simulated)
    return {kind: partial(_drawn, chart) for kind, chart in charts.items()}


def _drawn(chart: Callable[[], Chart]) -> "Figure":
    return figure_of(chart())

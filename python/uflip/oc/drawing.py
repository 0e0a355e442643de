"""Single figures of uFLIP-OC for papers; see `uflip.report.figures.paper`."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from uflip.microbench.open_channel.oc2 import KINDS
from uflip.oc import figures
from uflip.oc.result_dir import OpenChannelResult
from uflip.report.figures.chart import Chart
from uflip.report.figures.matplotlib_chart import figure_of
from uflip.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[], "Figure"]


def kinds_of(results: Results) -> dict[str, Draw]:
    """Return the figures of a result: kind -> a function that draws it."""
    findings, simulated = OpenChannelResult(results).measured, results.manifest.device.simulated
    charts: dict[str, Callable[[], Chart]] = {}
    if (single_lun := findings.oc0) is not None:
        titles = {mix: mix for mix in single_lun.mixes}
        charts["bands"] = lambda: figures.bands(single_lun.mixes, titles, simulated=simulated)
        charts["luns"] = lambda: figures.heat_map(
            single_lun.write_mb_per_s, single_lun.read_mb_per_s, simulated=simulated
        )
    if (worn := findings.oc1) is not None:
        charts["wear"] = lambda: figures.wear(worn, simulated=simulated)
    if (scaled := findings.oc2) is not None:
        panels = [("writes", list(KINDS)[:2]), ("reads", list(KINDS)[2:])]
        charts["channel"] = lambda: figures.scalings(scaled, panels=panels, simulated=simulated)
    if (channels := findings.oc3) is not None:
        panels_by_channel = [
            (word, [f"{word}, vectors", f"{word}, threads"]) for word in ("writes", "reads")
        ]
        charts["channels"] = lambda: figures.scalings(
            channels.scaling, panels=panels_by_channel, simulated=simulated
        )
        shares = {share: share for share in channels.mixes}
        charts["writers"] = lambda: figures.bands(channels.mixes, shares, simulated=simulated)
    return {kind: partial(_draw_chart, chart) for kind, chart in charts.items()}


def _draw_chart(chart: Callable[[], Chart]) -> "Figure":
    return figure_of(chart())

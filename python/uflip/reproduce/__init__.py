"""Reproductions of the papers' figures and tables: published values beside simulated ones.

To add one, write a file with a `Reproduction`, and add a line to the list below; the command line
and the tests use the list.
"""

from typing import Any

from uflip.reproduce import (
    ms_cliff,
    ms_fig1,
    ms_fig2,
    ms_fig3,
    ms_fig4,
    ms_life,
    oc_fig2,
    oc_fig3,
    oc_fig4,
    oc_fig5,
    oc_table2,
    oc_table3,
    ofc_fig5a,
    ofc_fig5b,
    ofc_fig6a,
    ofc_fig6b,
    ofc_fig7,
    ofc_scaling,
    ofc_throughput,
    uflip_hints,
    uflip_states,
    uflip_sweeps,
    uflip_table3,
    uflip_traces,
)
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionOutcome,
    ReproductionRow,
    carry_out,
)

REPRODUCTIONS: dict[str, Reproduction[Any]] = {
    reproduction.id: reproduction
    for reproduction in (
        ms_fig1.REPRODUCTION,
        ms_fig2.REPRODUCTION,
        ms_fig3.REPRODUCTION,
        ms_fig4.REPRODUCTION,
        ms_cliff.REPRODUCTION,
        ms_life.REPRODUCTION,
        ofc_fig5a.REPRODUCTION,
        ofc_fig5b.REPRODUCTION,
        ofc_fig6a.REPRODUCTION,
        ofc_fig6b.REPRODUCTION,
        ofc_fig7.REPRODUCTION,
        ofc_scaling.REPRODUCTION,
        ofc_throughput.REPRODUCTION,
        oc_fig2.REPRODUCTION,
        oc_fig3.REPRODUCTION,
        oc_fig4.REPRODUCTION,
        oc_fig5.REPRODUCTION,
        oc_table2.REPRODUCTION,
        oc_table3.REPRODUCTION,
        uflip_table3.REPRODUCTION,
        uflip_hints.REPRODUCTION,
        uflip_states.REPRODUCTION,
        uflip_traces.FIGURE_3,
        uflip_traces.FIGURE_4,
        uflip_traces.FIGURE_5,
        uflip_sweeps.FIGURE_6,
        uflip_sweeps.FIGURE_7,
        uflip_sweeps.FIGURE_8,
    )
}
"""Id -> reproduction, in the order of the list."""

__all__ = ["REPRODUCTIONS", "Reproduction", "ReproductionOutcome", "ReproductionRow", "carry_out"]

"""Reproductions of the papers' figures and tables: published values beside simulated ones.

To add one, write a file with a `Reproduction`, and add a line to the list below; the command line
and the tests use the list.
"""

from typing import Any

from uflip.reproduce import (
    ms,
    ms_life,
    oc,
    oc_cross_fit,
    oc_media,
    ofc,
    ofc_pipelined,
    ofc_relocation,
    ofc_wear,
    ofc_workloads,
    uflip_figures,
    uflip_statements,
    uflip_states,
    uflip_table3,
)
from uflip.reproduce.drives import comparison
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionOutcome,
    ReproductionRow,
    carry_out,
)

REPRODUCTIONS: dict[str, Reproduction[Any]] = {
    reproduction.id: reproduction
    for reproduction in (
        ms.MS_FIGURE_1,
        ms.MS_FIGURE_2,
        ms.MS_FIGURE_3,
        ms.MS_FIGURE_4,
        ms.MS_CLIFF,
        ms_life.REPRODUCTION,
        ofc_wear.OFC_FIGURE_1,
        ofc_wear.OFC_FIGURE_4,
        ofc_relocation.OFC_FIGURE_5A,
        ofc_relocation.OFC_FIGURE_5B,
        ofc_relocation.OFC_FIGURE_6A,
        ofc_workloads.OFC_FIGURE_6B,
        ofc_workloads.OFC_FIGURE_7,
        ofc_pipelined.OFC_SCALING,
        ofc.OFC_THROUGHPUT,
        oc.OC_FIGURE_2,
        oc.OC_FIGURE_3,
        oc.OC_FIGURE_4,
        oc.OC_FIGURE_5,
        oc.OC_TABLE_2,
        oc.OC_TABLE_3,
        oc_cross_fit.REPRODUCTION,
        oc_media.REPRODUCTION,
        uflip_table3.REPRODUCTION,
        uflip_figures.UFLIP_HINTS,
        uflip_statements.REPRODUCTION,
        uflip_states.REPRODUCTION,
        uflip_figures.FIGURE_3,
        uflip_figures.FIGURE_4,
        uflip_figures.FIGURE_5,
        uflip_figures.FIGURE_6,
        uflip_figures.FIGURE_7,
        uflip_figures.FIGURE_8,
        comparison.REPRODUCTION,
    )
}
"""Id -> reproduction, in the order of the list."""

__all__ = ["REPRODUCTIONS", "Reproduction", "ReproductionOutcome", "ReproductionRow", "carry_out"]

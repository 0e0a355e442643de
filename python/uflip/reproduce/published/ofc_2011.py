"""Published values of OFC (IBM RZ 3795, 2011): its text and figures 5 to 7."""

from uflip.reproduce.published.value import Paper

_ofc = Paper("ofc", "OFC (2011)", device="ofc").value

OFC_2011 = (
    # The six numbers to which constants were fitted, and the same in MB/s.
    _ofc("raw_reads", "§III", "raw reads, no processing (§III)", "30", "kIOPS"),
    _ofc("sequential_reads", "§V.F", "sequential reads (§V.F)", "27", "kIOPS"),
    _ofc("clean_writes", "§V.F", "sequential writes, clean device (§V.F)", "18", "kIOPS"),
    _ofc("random_reads", "§V.F", "random reads (§V.F)", "24", "kIOPS"),
    _ofc("erasing_writes", "§V.F", "sequential writes, blocks erased (§V.F)", "17", "kIOPS"),
    _ofc("drop_30_pages", "§V.B", "drop from 0 to 30 relocated pages (§V.B)", "50", "%"),
    _ofc("reads_mb", "abstract", "sequential reads", "115", "MB/s", ("sequential_reads",)),
    _ofc("writes_mb", "abstract", "sequential writes", "72", "MB/s", ("erasing_writes",)),
    # No constant was fitted to the values below, but to values from which some of them follow.
    _ofc("raw_writes", "§III", "raw writes, no processing (§III)", "20", "kIOPS"),
    _ofc("random_writes_30", "§V.C", "random writes, 30 % spare", "6", "kIOPS"),
    _ofc("random_writes_45", "§V.D", "random writes, 45 % spare", "8.5", "kIOPS"),
    # Between no pages and 30 any falling, convex curve comes to 8.5 to 9.35.
    _ofc("relocating_27", "§V.D", "random writes at 27 relocated pages", "8.5", "kIOPS",
           ("erasing_writes", "drop_30_pages")),
    _ofc("random_writes_60", "§V.C", "random writes, 60 % spare", "13", "kIOPS"),
    _ofc(
        "ratio_60_30", "§V.C", "random writes, 60 % over 30 % spare", "more than 2", "",
        ("random_writes_30", "random_writes_60"),
    ),
    _ofc("pages_30", "§V.C", "relocated pages, 30 % spare", "45", "pages"),
    _ofc("pages_45", "§V.D", "relocated pages, 45 % spare", "27", "pages"),
    _ofc("pages_60", "§V.C", "relocated pages, 60 % spare", "15", "pages"),
    _ofc("amplification_45", "§V.D", "relocated pages per host page, 45 % spare", "0.5"),
    _ofc("level_after", "§V.D", "time until the rate stays at its level", "a few minutes",
           "minutes"),
    _ofc("stable", "§V.D", "largest over smallest minute after that", "stable", "%"),
    _ofc("mix_falls", "§V.E", "largest rise from one share of writes to the next",
           "the rate drops", "kIOPS"),
    _ofc("mix_below", "§V.E", "with relocation over erases only: largest ratio at any mix",
           "below 1"),
    _ofc("sixteen_channels", "§VI", "sequential reads, 16 channels over 4", "can be handled"),
    _ofc("freed_alone", "§VI", "pages freed with 25 % relocated, host at rest, over writes",
           "sufficient"),
    _ofc("freed_beside", "§VI", "writes with 25 % relocated over those with none",
           "not sufficient"),
    # Both ends of both curves are printed.
    _ofc(
        "mix_drop", "§V.E", "drop from reads to writes alone: with relocation over erases only",
        "above 1", "", ("random_writes_45", "erasing_writes", "random_reads"),
    ),
    # 24 of 27.
    _ofc("step_3_below_2", "§V.F", "#3 below #2", "11", "%",
           ("sequential_reads", "random_reads")),
    _ofc("step_4_first", "§V.F", "#4 random writes, first second over steady", "initially high"),
    _ofc("step_4_slowest", "§V.F", "#4 random writes, slowest second", "5", "kIOPS"),
    _ofc("step_5", "§V.F", "#5 sequential reads of randomly written pages over #2", "lower"),
    _ofc("step_6", "§V.F", "#6 random reads, first seconds over #5", "the same level"),
    _ofc("step_6_rises", "§V.F", "#6 random reads, last second above the first", "increases",
           "%"),
    _ofc("step_7", "§V.F", "#7 sequential writes, first seconds over steady #4", "similar"),
    _ofc("step_7_steady", "§V.F", "#7 sequential writes, steady over #1", "the same value"),
    _ofc("step_8", "§V.F", "#8 sequential reads over #2", "similar"),
    _ofc("step_9", "§V.F", "#9 random reads over #3", "similar"),
)  # fmt: skip

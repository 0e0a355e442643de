"""Traces with odd lines: each is left out and counted, and changes no number."""

import json
from pathlib import Path
from statistics import fmean

import pytest
from command_line import uflip

HEAD = "Timestamp,Response,IOType,LUN,Offset,Size\n"
TIMES = [100 + i * 7 % 50 for i in range(200)]
"""Response times [us]."""
SYSTOR = [f"{1456135200 + i}.01,0.000{time},R,0,{i * 4096},4096\n" for i, time in enumerate(TIMES)]
MSR = [
    f"{128166372003061629 + 900 * i},usr,0,Read,{i << 20},4096,{time}0\n"
    for i, time in enumerate(TIMES)
]


def changed(lines: list[str], number: int, old: str, new: str) -> list[str]:
    return [line.replace(old, new) if at == number else line for at, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("lines", "left_out", "missing"),
    [
        (["\ufeff", *MSR], {}, None),
        ([line.replace("\n", "\r\n") for line in MSR], {}, None),
        ([*MSR[:100], "\0" * 4096 + "\n", *MSR[100:]], {"odd": 1}, None),
        ([*MSR[:-1], MSR[-1][:-20]], {"odd": 1}, 199),
        (changed(MSR, 5, "1281", "-1281"), {"odd": 1}, 5),
        (changed(MSR, 5, ",4096,", ',"4,096",'), {"odd": 1}, 5),
        (changed(MSR, 5, ",4096,", ",4096.5,"), {"odd": 1}, 5),
        (changed(MSR, 5, ",4096,", ",999999999999,"), {"odd": 1}, 5),
        ([HEAD, *changed(SYSTOR, 3, ",R,", ",,")], {"without a type": 1}, 3),
    ],
    ids=["bom", "crlf", "nul", "cut", "negative", "thousands", "fraction", "huge", "no-type"],
)
def test_odd_lines_change_no_number(
    lines: list[str], left_out: dict[str, int], missing: int | None, workdir: Path
) -> None:
    Path("odd.csv").write_text("".join(lines), encoding="utf-8", newline="")
    outcome = uflip("show", "odd.csv", "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    found = {**document["left_out"], "odd": document["odd_lines"]}
    assert {name: count for name, count in found.items() if count} == left_out
    times = [time for at, time in enumerate(TIMES) if at != missing]
    assert document["ios"] == len(times)
    assert document["response_time_ns"]["mean"] == pytest.approx(1000 * fmean(times))


@pytest.mark.parametrize(
    "text",
    [
        "".join(changed(MSR, at, ",4096,", f",{1 << 30},")[at] for at in range(200)),
        "latency_us\n" + "".join(f'"1,{i % 7:03}"\n' for i in range(99)),
        "latency_us\n" + "".join(f"0x{90 + i % 7:x}\n" for i in range(99)),
    ],
    ids=["swapped", "thousands", "hexadecimal"],
)
def test_ambiguous_columns_are_refused(text: str, workdir: Path) -> None:
    Path("odd.csv").write_text(text)
    outcome = uflip("analyse", "odd.csv")
    assert outcome.code != 0
    assert "cannot be read" in outcome.err

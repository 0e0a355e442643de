"""Make `docs/papers.md` from `docs/papers.toml`: the claims of the papers, what is built, and how
strong the evidence is.

python tools/gen_papers.py            write the page
python tools/gen_papers.py --check    check that the page is current; exit 1 if not
"""

import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from generated import write_or_check

from uflip.reproduce.published import PUBLISHED
from uflip.reproduce.reproduction import FITTED, PREDICTION, kind_of

DOCS = Path(__file__).resolve().parent.parent / "docs"
SOURCE, PAGE = DOCS / "papers.toml", DOCS / "papers.md"
BUILT = ("there", "partly", "missing", "outside")
EVIDENCE = ("predicted", "fitted", "equation", "mechanism only", "nothing printed")

HEAD = """\
# From the papers to the code

Each claim of each paper: is it built, and how strong is the evidence that it is right? This page is
made from `docs/papers.toml` by `python tools/gen_papers.py`. Tests check that the files and tests
named here exist, that each built claim has a test, that nothing called missing has appeared in the
code, and that every published value belongs to a claim. Do not edit this page.

| built | meaning |
|---|---|
| there | implemented, and a test checks it; the note names deliberate differences |
| partly | implemented in part; the note names the missing part |
| missing | not implemented |
| outside | not a behaviour of a device or a tool, so that nothing can be implemented |

The evidence is calculated, from the published values of the claim and from the sources of the
constants of the simulated device (`[sources]` of its profile). It counts values: with *2 predicted,
5 fitted* constants were set with 5 of the values in view. A miss is a value outside of its
tolerance; the command prints it with the reason.

| evidence | meaning |
|---|---|
| predicted | no constant of the device was set with the value in view |
| fitted | a constant was set with it in view, or with a value that determines it |
| equation | a closed form of the paper, evaluated |
| mechanism only | the paper prints no value of it; the test checks the behaviour |
| nothing printed | a table or figure without a value that could be compared |

Where a paper is ambiguous, the labelled lines of the file name the reading. The pages of
`uflip reproduce` compare the numbers with the printed ones: [uFLIP, Myers & Sinclair and
OFC](reference/reproduce.md), [uFLIP-OC](reference/reproduce-oc.md).
"""


def page(content: dict[str, Any]) -> str:
    """Return the whole page."""
    misses = content["misses"]
    sections = [
        f"## {paper['title']}\n\n{paper['full']}.\n\n{table(paper['rows'], misses)}"
        for paper in content["papers"]
    ]
    return "\n".join([HEAD, overview(content["papers"]), *sections])


def overview(papers: list[dict[str, Any]]) -> str:
    """Return the number of rows of each paper by what is built, and of values by evidence."""
    head = ["paper", *BUILT, "values", "predicted", "fitted", "equations"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for paper in papers:
        rows = paper["rows"]
        built = Counter(row["built"] for row in rows)
        # A value of several claims counts once, as predicted if one of them predicts it.
        kinds: dict[str, set[str]] = {}
        for row in rows:
            for key, kind in value_kinds(row).items():
                kinds.setdefault(key, set()).add(kind)
        fitted = sum(found == {FITTED} for found in kinds.values())
        equations = sum(row["kind"] == "equation" for row in rows)
        counts = [built[name] for name in BUILT]
        counts += [len(kinds), len(kinds) - fitted, fitted, equations]
        lines.append(f"| {paper['title']} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines) + "\n"


def value_kinds(row: dict[str, Any]) -> dict[str, str]:
    """Return for each published value of a claim whether it is fitted or predicted."""
    ids = [
        value_id
        for value_id in PUBLISHED
        if any(fnmatchcase(value_id, pattern) for pattern in row.get("values", []))
    ]
    if row.get("held_out"):
        return dict.fromkeys(ids, PREDICTION)
    return {value_id: kind_of(value_id, row.get("device")) for value_id in ids}


def evidence(row: dict[str, Any], misses: dict[str, list[str]]) -> str:
    """Return the evidence of a claim, and the command that prints it."""
    if row["built"] in {"missing", "outside"}:
        return ""
    kinds = list(value_kinds(row).values())
    fitted = kinds.count(FITTED)
    counts = [(len(kinds) - fitted, EVIDENCE[0]), (fitted, EVIDENCE[1])]
    words = [f"{count} {kind}" for count, kind in counts if count]
    if not words:
        words = [without_values(row["kind"])]
    commands = row.get("reproduce", [])
    missed = sum(len(misses.get(name, [])) for name in commands)
    if missed:
        words.append(f"{missed} miss" if missed == 1 else f"{missed} misses")
    named = ", ".join(f"`{name}`" for name in commands)
    return ", ".join(words) + (f": {named}" if named else "")


def without_values(kind: str) -> str:
    """Return the evidence of a claim of some kind without published values."""
    by_kind = {"equation": EVIDENCE[2], "table": EVIDENCE[4], "figure": EVIDENCE[4]}
    return by_kind.get(kind, EVIDENCE[3])


def table(rows: list[dict[str, Any]], misses: dict[str, list[str]]) -> str:
    """Return the rows of a paper."""
    lines = ["| where | what | built | evidence | code | test |", "|---|---|---|---|---|---|"]
    for row in rows:
        claim = f"{row['kind']}: {row['what']}"
        built = row["built"] + (f": {row['note']}" if row.get("note") else "")
        code, tests = (", ".join(f"`{n}`" for n in row.get(key, [])) for key in ("code", "tests"))
        cells = (row["where"], claim, built, evidence(row, misses), code, tests)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page(tomllib.loads(SOURCE.read_text(encoding="utf-8")))}))

"""Make `docs/papers.md` from `docs/papers.toml`: the claims of the papers, and their status.

python tools/gen_papers.py            write the page
python tools/gen_papers.py --check    check that the page is current; exit 1 if not
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from generated import write_or_check

DOCS = Path(__file__).resolve().parent.parent / "docs"
SOURCE, PAGE = DOCS / "papers.toml", DOCS / "papers.md"
STATUSES = ("there", "partly", "differs", "missing")

HEAD = """\
# From the papers to the code

Each claim of each paper, and its status in the project. This page is made from `docs/papers.toml`
by `python tools/gen_papers.py`. Tests check that the files and tests named here exist, that each
claim except the missing ones has a test, and that nothing called missing has appeared in the code.
Do not edit this page.

| status | meaning |
|---|---|
| there | implemented as in the paper; a test checks it |
| partly | implemented in part; the note names the missing part |
| differs | deliberately different; the note names the difference |
| missing | not implemented |

Where a paper is ambiguous, the labelled lines of the file name the reading. The pages of
`uflip reproduce` compare the numbers with the printed ones: [uFLIP, Myers & Sinclair and
OFC](reference/reproduce.md), [uFLIP-OC](reference/reproduce-oc.md).
"""


def page(content: dict[str, Any]) -> str:
    """Return the whole page."""
    sections = [
        f"## {paper['title']}\n\n{paper['full']}.\n\n{table(paper['rows'])}"
        for paper in content["papers"]
    ]
    return "\n".join([HEAD, overview(content["papers"]), *sections])


def overview(papers: list[dict[str, Any]]) -> str:
    """Return the number of rows of each paper, by status."""
    lines = ["| paper | " + " | ".join(STATUSES) + " |", "|---" * (len(STATUSES) + 1) + "|"]
    for paper in papers:
        counts = Counter(row["status"] for row in paper["rows"])
        cells = " | ".join(str(counts[status]) for status in STATUSES)
        lines.append(f"| {paper['title']} | {cells} |")
    return "\n".join(lines) + "\n"


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of a paper."""
    lines = ["| where | what | status | code | test |", "|---|---|---|---|---|"]
    for row in rows:
        claim = f"{row['kind']}: {row['what']}"
        status = row["status"] + (f": {row['note']}" if row.get("note") else "")
        code, tests = (", ".join(f"`{n}`" for n in row.get(key, [])) for key in ("code", "tests"))
        lines.append(f"| {row['where']} | {claim} | {status} | {code} | {tests} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page(tomllib.loads(SOURCE.read_text(encoding="utf-8")))}))

"""Is docs/papers.toml true: do its tests exist, and is missing work missing?"""

import fnmatch
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from uflip.reproduce import REPRODUCTIONS
from uflip.reproduce.published import PUBLISHED

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import gen_papers  # noqa: E402 - a tool of the repository, not a package

CONTENT = tomllib.loads((ROOT / "docs/papers.toml").read_text(encoding="utf-8"))
ROWS = [(paper["id"], row) for paper in CONTENT["papers"] for row in paper["rows"]]
KINDS = {"claim", "mechanism", "table", "figure", "equation", "future work"}
TESTED = ("there", "partly")

# Numbered items of the papers: figures, tables, equations.
NUMBERED = {
    "uflip": [*(f"Figure {n}" for n in range(1, 9)), *(f"Table {n}" for n in range(1, 4))],
    "ms": [
        *(f"Figure {n}" for n in range(1, 5)),
        *(f"Table {n}" for n in range(1, 3)),
        *(f"equation ({n})" for n in range(1, 4)),
    ],
    "ofc": [
        *(f"Figure {n}" for n in range(1, 8)),
        *("Table I", "Table II", "equation (1)", "equation (2)"),
    ],
    "oc": [*(f"Figure {n}" for n in range(1, 6)), *(f"Table {n}" for n in range(1, 4))],
}


def name_of(value: Any) -> str:
    return f"{value['where']}-{value['what'][:40]}" if isinstance(value, dict) else str(value)


def test_papers_page_is_current() -> None:
    process = subprocess.run(
        [sys.executable, ROOT / "tools/gen_papers.py", "--check"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(("paper", "row"), ROWS, ids=name_of)
def test_row_has_fields_that_it_needs(paper: str, row: dict[str, Any]) -> None:
    keys = {
        *("where", "kind", "what", "built", "code", "tests", "note", "probe"),
        *("values", "device", "held_out", "reproduce"),
    }
    assert set(row) <= keys
    assert row["kind"] in KINDS
    assert row["built"] in (*TESTED, "missing", "outside")
    if row["built"] not in TESTED:
        assert not row.get("tests")
        # What name would code for it have, or why can there be none?
        assert row.get("probe") if row["built"] == "missing" else row.get("note")
        return
    assert row["tests"], "a row needs a test that would fail if it were not so"
    assert row["code"]
    assert "probe" not in row
    if row["built"] == "partly":
        assert row.get("note"), "which part is missing?"


def test_published_values_belong_to_claims() -> None:
    """Each value is counted as evidence of a claim, and each pattern names a value."""
    patterns = [(row, pattern) for _, row in ROWS for pattern in row.get("values", [])]
    for row, pattern in patterns:
        assert fnmatch.filter(PUBLISHED, pattern), f"{row['what']}: {pattern}"
    for value_id in PUBLISHED:
        assert any(fnmatch.fnmatchcase(value_id, pattern) for _, pattern in patterns), value_id


def test_named_reproductions_exist() -> None:
    named = {name for _, row in ROWS for name in row.get("reproduce", [])}
    assert named | set(CONTENT["misses"]) <= set(REPRODUCTIONS)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"kind": "equation"}, "equation"),
        ({"kind": "mechanism"}, "mechanism only"),
        ({"kind": "figure"}, "nothing printed"),
        # Of the raw rates one constant was fitted to the reads alone.
        ({"kind": "claim", "values": ["ofc/raw_*"]}, "1 predicted, 1 fitted"),
        # RR depends on constants that were fitted to it, SR also on a size that was inferred.
        ({"kind": "claim", "values": ["uflip/table3/memoright/[RS]R"]}, "2 fitted"),
        ({"kind": "claim", "values": ["uflip/table3/memoright/[RS]R"], "held_out": True},
         "2 predicted"),
        # The same values on a device whose constants were inferred from both.
        ({"kind": "claim", "values": ["ofc/raw_*"], "device": "ofc-pipelined"}, "2 fitted"),
        ({"kind": "claim", "values": ["ofc/drop_30_pages"], "reproduce": ["a"]},
         "1 fitted, 2 misses: `a`"),
    ],
)  # fmt: skip
def test_evidence_follows_from_sources(row: dict[str, Any], words: str) -> None:
    assert gen_papers.evidence({"built": "there", **row}, {"a": ["x", "y"]}) == words


@pytest.mark.parametrize(("paper", "row"), ROWS, ids=name_of)
def test_files_and_tests_of_a_row_exist(paper: str, row: dict[str, Any]) -> None:
    for path in row.get("code", []):
        assert (ROOT / path).exists(), path
    for node in row.get("tests", []):
        path, _, name = node.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        if name:
            assert re.search(rf"\b(def|fn) {name}\b", text), node
        else:
            assert re.search(r"\bdef test_|#\[test\]", text), f"{node} holds no test"


def sources() -> Iterator[Path]:
    yield from ROOT.glob("crates/*/src/**/*.rs")
    yield from ROOT.glob("python/uflip/**/*.py")


@pytest.fixture(scope="module")
def code() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sources())


@pytest.mark.parametrize("row", [row for _, row in ROWS if row["built"] == "missing"], ids=name_of)
def test_missing_feature_is_not_in_the_code(row: dict[str, Any], code: str) -> None:
    match = re.search(rf"\b(?:{row['probe']})", code)
    assert match is None, f"{match.group()} is there: the row is not missing any more"


@pytest.mark.parametrize("paper", NUMBERED)
def test_numbered_items_of_papers_have_a_row(paper: str) -> None:
    wheres = [row["where"] for paper_id, row in ROWS if paper_id == paper]
    for number in NUMBERED[paper]:
        assert any(re.search(rf"{re.escape(number)}(?!\w)", where) for where in wheres), number


def test_sections_with_results_have_a_row() -> None:
    for paper, sections in {
        "uflip": "2.1 2.2 2.3 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2 5.3 6",
        "ms": "2.2 2.3 4 6.1 6.2 7",
        "ofc": "III IV.A IV.B IV.C IV.D IV.E V.B V.C V.D V.E V.F VI",
        "oc": "2.1 4.1 4.2 4.3 5.1.1 5.1.3 6 7",
    }.items():
        wheres = " ".join(row["where"] for paper_id, row in ROWS if paper_id == paper)
        for section in sections.split():
            assert re.search(rf"§{re.escape(section)}(?![\w.])", wheres), f"{paper} §{section}"

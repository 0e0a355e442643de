"""The verbs that show results: their output and their errors."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import stored
from command_line import start, uflip, unchanged


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored.results(tmp_path / "demo", [*stored.FOUR, stored.mix_run(5, "SR", "RR", 2)])
    return tmp_path / "demo"


def test_show_prints_the_summary_and_changes_nothing(folder: Path) -> None:
    with unchanged(folder.parent):
        compact, full = uflip("show", folder), uflip("show", folder, "--full")
    assert (compact.code, compact.err) == (0, "")
    assert compact.out.startswith("demo, ")
    assert "SIMULATED" in compact.out
    assert "SR/RR" in compact.out
    assert full.code == 0


def test_what_a_limit_left_out_is_not_the_device_s_fault(here: Path) -> None:
    asked = ("--scale", "quick", "--only", "order", "--max-bytes-written", "4MiB", "--out", "r")
    assert uflip("run", "sim:demo?blocks_per_die=64", *asked, "-q").code == 0
    assert uflip("report", "r", "-o", "r.html").code == 0
    text, page = uflip("show", "r").out, Path("r.html").read_text(encoding="utf-8")
    assert "the plan may write 4 MiB at most" in " ".join(text.split())
    for shown in (text, page):
        assert "left out of the plan" in shown
        assert "this device cannot" not in shown.lower()


def test_show_json_is_the_documented_document(folder: Path) -> None:
    done = uflip("show", folder, "--json")
    assert done.code == 0
    document = json.loads(done.out)
    assert {"device", "baselines_ms", "micro_benchmarks", "warnings", "skipped", "status", "scale",
            "seed", "harness", "host", "format_version"} <= set(document)  # fmt: skip
    assert set(document["baselines_ms"]) == {"SR", "RR", "SW", "RW"}
    (experiment,) = document["micro_benchmarks"]["mix"]
    assert (experiment["pattern"], experiment["parameter"], experiment["value"]) == (
        "SR/RR", "ratio", 2,
    )  # fmt: skip
    assert experiment["statistics"]["mean_ns"] > 0


def test_report_writes_one_file(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = uflip("report", folder, "-o", out)
    assert done.code == 0, done.err
    assert str(out) in done.out
    first = out.read_bytes()
    again = uflip("report", folder, "-o", out, "--json")
    assert json.loads(again.out) == {"report": str(out), "size_bytes": len(first), "runs": 5}
    assert out.read_bytes() == first
    assert uflip("report", folder, "-o", out, "--quiet").out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "report.html"]


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_export_makes_a_folder_beside_the_results(folder: Path, file_format: str) -> None:
    done = uflip("export", folder, "--format", file_format, "--json")
    assert done.code == 0, done.err
    made = json.loads(done.out)
    assert made["folder"] == f"{folder}-{file_format}"
    assert sorted(path.name for path in Path(made["folder"]).iterdir()) == made["files"]
    with unchanged(folder.parent):
        again = uflip("export", folder, "--format", file_format)
    assert again.code == 5


@pytest.mark.parametrize("verb", ["show", "report", "export"])
def test_what_is_no_result_folder_ends_in_code_5(verb: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with unchanged(tmp_path):
        for name in ("nowhere", "empty"):
            done = uflip(verb, tmp_path / name)
            assert (done.code, done.out) == (5, "")
            assert str(tmp_path / name) in done.err
            assert "uflip run" in done.err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("show",), ""),
        (("report", "-o", "page.html"), "page.html"),
        (("export", "--out", "tables"), "tables/summary.csv"),
    ],
)
def test_a_truncated_run_file_is_named_and_the_others_are_shown(
    arguments: tuple[str, ...], shown: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    path = next((folder / "runs").glob("0002*"))
    path.write_bytes(path.read_bytes()[:-20])
    with unchanged(folder):
        done = uflip(arguments[0], folder, *arguments[1:], "--json")
    assert done.code == 0, done.err
    said = (folder.parent / shown).read_text() if shown else done.out
    others = [run.stem for run in (folder / "runs").iterdir() if run != path]
    assert all(run in said for run in others) or arguments[0] == "report"
    assert (path.name in said) == (arguments[0] != "export")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "--format", "xlsx"), "csv, parquet"),
        (("report", "-o", "."), "a folder"),
        (("report", "-o", "nowhere/report.html"), "does not exist"),
        (("show", "--nonsense"), "nonsense"),
    ],
)
def test_wrong_options_end_in_code_2(
    folder: Path, arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    with unchanged(folder.parent):
        done = uflip(arguments[0], folder, *arguments[1:])
    assert done.code == 2
    assert said in done.err


def test_results_are_needed() -> None:
    for verb in ("show", "report", "export"):
        assert uflip(verb).code == 2


@pytest.mark.parametrize(("library", "refused"), [("jinja2", "report"), ("matplotlib", "figure")])
def test_without_a_library_all_works_but_what_needs_it(
    folder: Path, library: str, refused: str
) -> None:
    verbs = {
        "show": ("show", folder),
        "report": ("report", folder, "-o", folder.parent / "out.html"),
        "figure": ("figure", folder, "traces", "-o", folder.parent / "out.svg"),
    }
    without = (
        f"import sys; sys.modules[{library!r}] = None; from uflip.cli.main import main; main()"
    )
    for verb, arguments in verbs.items():
        command = [sys.executable, "-c", without, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == (6 if verb == refused else 0), done.stderr
        if verb == refused:
            assert library in done.stderr
            assert "pip install" in done.stderr
    there = {path.suffix for path in folder.parent.glob("out.*")}
    assert there == {".html", ".svg"} - {".html" if refused == "report" else ".svg"}


def test_looking_at_results_does_not_wait_for_heavy_libraries(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with start("show", folder) as process:
        _, imports = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "uflip.results" in imports
    assert not re.search(r"\b(matplotlib|rich|pyarrow|pandas|scipy)\b", imports)

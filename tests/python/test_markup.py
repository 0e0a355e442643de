"""Does foreign text stay text, wherever it is shown?

Every text field of a result folder, a profile and a sweep gets a probe that is a tag,
an attribute, a script, a formula and a terminal escape at once. Pages are read by a browser's
parser, tables by a CSV reader, and terminal output is searched for control characters.
"""

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import stored
from command_line import uflip
from selectolax.lexbor import LexborHTMLParser

from uflip.data.device import Geometry
from uflip.data.summary import Rule
from uflip.errors import ResultsError
from uflip.microbench.experiment import PlannedRun
from uflip.oc.benchmark import OpenChannelFindings
from uflip.oc.page import build_page
from uflip.profiles import read_profile
from uflip.results import Results
from uflip.results.outputs import cell

# Ends of a comment, a style, a title, a picture and an attribute, then a tag and a script.
MARKUP = "\"'>--></style></title></svg></td><uflipprobe onprobe=x><script>probe(1)</script>&lt;]]>"
TERMINAL = "\x1b[2J\x1b]0;probe\x07\x9b31m\x7f\x08\r\u202e\u2066"
PROBE = f"=cmd|'/C probe'!A0{MARKUP}{TERMINAL}"
# Control characters of a terminal: no output may contain one.
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Beginnings of cells that a spreadsheet evaluates.
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n\x00]")
# Elements that uflip's pages may have; scripts are not among them.
OURS = """
    html head meta title style body header p span h1 h2 h3 h4 nav ol ul li a main section div b br
    small dl dt dd abbr code figure figcaption details summary table caption thead tbody tr th td
    footer svg g path rect use defs clippath text tspan image desc circle line
"""
TAGS = set(OURS.split())


def text_paths(document: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts in a document."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from text_paths(value, (*where, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from text_paths(value, (*where, index))
    elif isinstance(document, str):
        yield where


def put(document: Any, where: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value at a place."""
    copy = json.loads(json.dumps(document))
    at = copy
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = value
    return copy


WARNING = {"code": "c", "message": "m", "numbers": {"runs": ["one", "two"]}, "advice": "a"}
SKIPPED = {
    "micro_benchmark": "m", "pattern": "p", "parameter": "q", "value": 1, "reason": "r",
}  # fmt: skip


@pytest.fixture(scope="module")
def probed_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result folder with the probe in every text field that a reader accepts one in."""
    folder = tmp_path_factory.mktemp("probed") / "r"
    runs: tuple[PlannedRun, ...] = (
        *stored.FOUR,
        stored.mix_run(5, "SR", "RW", 2),
        stored.planned_run(
            6, "order", "SW", parameter="incr", value=-1, unit="ios",
            spec=stored.FOUR[2].spec.but(location="ordered", incr=-1),
        ),
        stored.planned_run(
            7, "foreign", "SW", parameter="depth", value=2, unit="x", spec=stored.FOUR[2].spec
        ),
    )  # fmt: skip
    stored.results(folder, runs, warnings=[WARNING], skipped=[SKIPPED])
    path = folder / "manifest.json"
    (folder / "ledger.jsonl").unlink()  # with it, no text but the one that was written is read
    manifest = json.loads(path.read_text())
    accepted = 0
    for where in list(text_paths(manifest)):
        if where[0] == "plan" and where[2] == "micro_benchmark" and where[1] < len(stored.FOUR) + 2:
            continue  # a baseline stays one, so that there is something to draw
        tried = put(manifest, where, PROBE + str(accepted))
        path.write_text(json.dumps(tried))
        try:
            Results.load(folder).missing  # noqa: B018 -- reads
            outcome = uflip("show", folder, "--json")
        except ResultsError:
            continue
        assert outcome.code in (0, 5), (where, outcome.err)
        if outcome.code == 0:
            manifest, accepted = tried, accepted + 1
    path.write_text(json.dumps(manifest))
    assert accepted > 40, "most texts are free"
    return folder


def check_page(text: str) -> LexborHTMLParser:
    """No probe is a tag, an attribute, an id, a style, a comment or a script."""
    page = LexborHTMLParser(text)
    for node in page.root.traverse(include_text=False):
        assert node.tag.lower() in TAGS, node.tag
        for name, value in node.attributes.items():
            assert not name.startswith("on")
            assert "probe" not in name
            if name not in ("title", "aria-label", "content"):
                # An id that is made of a name, and what leads to it.
                plain = re.fullmatch(r"(url\()?#?[A-Za-z0-9_. -]+\)?", value or "")
                assert plain or "probe" not in (value or ""), (node.tag, name, value)
            assert not re.match(r"\s*(javascript|data|vbscript):", value or "") or (
                node.tag == "image" and (value or "").startswith("data:image/png;base64,")
            )
    assert not [node for node in page.css("style") if "probe" in node.text()]
    assert text.lower().count("<script") == 0
    assert OBEYED.search(text) is None, "nothing turns writing around, or cannot be seen"
    return page


def test_result_folder_text_is_escaped_in_report(probed_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    outcome = uflip("report", probed_dir, "-o", out)
    assert outcome.code == 0, outcome.err
    page = check_page(out.read_text())
    text = page.body.text()
    assert text.count("<uflipprobe onprobe=x>") > 20, "the page shows the probes as text"
    assert text.count("\\x1b[2J\\x1b]0;probe\\x07") > 20, "and so is what a terminal obeys"


def test_result_folder_script_does_not_run_in_browser(probed_dir: Path, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if browser is None:
        pytest.skip("there is no chromium")
    out = tmp_path / "report.html"
    assert uflip("report", probed_dir, "-o", out).code == 0
    # Without the page's policy: escaped text needs none.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", out.read_text(), flags=16)
    out.write_text(text.replace("<title>", "<script>probe = () => document.title = 'ran'</script>"
                                "<title>", 1))  # fmt: skip
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        f"file://{out}",
    ]
    dumped = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "<title>ran" not in dumped.stdout
    assert "uflipprobe" in dumped.stdout


def test_result_folder_text_is_escaped_on_terminal(probed_dir: Path) -> None:
    for arguments in (
        ("show", probed_dir),
        ("show", probed_dir, "--full"),
        ("show", probed_dir, "--json"),
    ):
        outcome = uflip(*arguments)
        assert outcome.code == 0, outcome.err
        assert OBEYED.search(outcome.out + outcome.err) is None, arguments
        assert "uflipprobe" in outcome.out
    document = json.loads(uflip("show", probed_dir, "--json").out)
    texts = [
        text
        for where in text_paths(document)
        if (text := value_at(document, where)).startswith("=cmd")
    ]
    assert all(text.startswith(PROBE) for text in texts), "JSON keeps every character"


def value_at(document: Any, where: tuple[Any, ...]) -> str:
    for step in where:
        document = document[step]
    return str(document)


def check_table(path: Path, delimiter: str = ",") -> int:
    """No cell is a formula; returns how many cells hold a probe."""
    with path.open(newline="", encoding="utf-8") as file:
        cells = [each for row in csv.reader(file, delimiter=delimiter) for each in row]
    for each in cells:
        if FORMULA.match(each):
            float(each)  # a number, or this fails
    return sum("probe" in each for each in cells)


def test_result_folder_text_is_no_formula_in_csv(probed_dir: Path, tmp_path: Path) -> None:
    outcome = uflip("export", probed_dir, "-o", tmp_path / "tables")
    assert outcome.code == 0, outcome.err
    assert check_table(tmp_path / "tables" / "ios.csv") > 100
    assert check_table(tmp_path / "tables" / "summary.csv") > 5
    check_table(tmp_path / "tables" / "columns.csv")


@pytest.mark.parametrize("text", ["=1", "+1+1", "-a", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1",
                                  "\u00a0=1", "＝1+1", "\ufeff=1", "\x00=1"])  # fmt: skip
def test_formula_like_text_is_quoted(text: str) -> None:
    assert cell(text) == "'" + text


@pytest.mark.parametrize("value", [-1, -1.5, "-1", "+2.5e-7", "order", "", None, 0, "a=b", "1-2"])
def test_numbers_and_plain_text_stay_unquoted(value: Any) -> None:
    assert cell(value) == value


# Profiles, sweeps, open-channel devices


def profile(name: str, path: Path) -> Path:
    """Write a built-in profile whose description is the probe."""
    text = read_profile(name)[1]
    toml = json.dumps(PROBE)  # TOML's basic strings are written alike
    text, count = re.subn(r'^description = (""".*?"""|".*?")$', lambda _: f"description = {toml}",
                          text, count=1, flags=re.M | re.S)  # fmt: skip
    assert count == 1
    path.write_text(text)
    return path


def test_profile_text_is_escaped_everywhere(workdir: Path) -> None:
    path = profile("demo", workdir / "<uflipprobe onprobe='x'>=1&.toml")
    url = f"sim:{path.name}"
    out = ["run", url, "--only", "order", "--scale", "quick", "--state", "as-is", "--out", "r"]
    for arguments in (out, ["info", url], ["plan", url, "--scale", "quick"]):
        outcome = uflip(*arguments)
        assert outcome.code == 0, outcome.err
        assert OBEYED.search(outcome.out + outcome.err) is None, arguments
    assert uflip("report", "r").code == 0
    assert "uflipprobe" in check_page(Path("report.html").read_text()).body.text()
    varied = ["--vary", "gc=greedy,cyclic", "--vary", "seed=1,2", "--pattern", "RW"]
    outcome = uflip("sweep", url, *varied, "--io-count", "9", "-o", "s.svg", "--csv", "s.csv")
    assert outcome.code == 0, outcome.err
    check_table(Path("s.csv"))
    drawn = ElementTree.parse("s.svg")
    assert not [each for each in drawn.iter() if "probe" in str(each.tag)]


def test_open_channel_device_text_is_escaped(workdir: Path) -> None:
    path = profile("dfc", workdir / "evil.toml")
    outcome = uflip("oc", f"sim:{path}", "--scale", "quick", "--only", "oc2", "--out", "r")
    assert outcome.code == 0, outcome.err
    assert OBEYED.search(outcome.out + outcome.err) is None
    assert uflip("report", "r", "-o", "r.html").code == 0
    page = check_page(Path("r.html").read_text())
    assert "<uflipprobe" in page.body.text()


def test_open_channel_page_escapes_every_text() -> None:
    info = stored.device_info(
        "sim",
        url=PROBE,
        details={"geometry": Geometry(1, 1, 1, 1, 1, 1, 512, 1), "profile": {"description": PROBE}},
    )
    rules = [Rule(PROBE, PROBE, PROBE, PROBE)]
    texts = (
        "uflip_version", "scale", "status", "created_utc", "finished_utc", "elapsed_s", "seed",
        "pause_ns", "durability", "runs_planned", "runs_finished", "format_version",
    )  # fmt: skip
    document = dict.fromkeys(texts, PROBE) | {
        "device": info,
        "warnings": [WARNING],
        "skipped": [],
        "missing": [PROBE],
        "host": {PROBE: PROBE},
        "harness": {PROBE: PROBE},
        "baselines": [],
        "micro_benchmarks": {},
    }
    page = check_page(build_page(OpenChannelFindings(None, None, None, None), rules, document))
    assert page.body.text().count("<uflipprobe onprobe=x>") >= 10


# Errors


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", f"no{TERMINAL}folder"),
        ("run", f"file:no{TERMINAL}/file"),
        ("pattern", f"sim:{TERMINAL}"),
        (TERMINAL,),
        ("plan", "sim:demo", "--only", TERMINAL),
        ("pattern", "null", "--pattern", TERMINAL),
        ("report", f"no{TERMINAL}", "-o", f"no{TERMINAL}/x"),
        ("reproduce", TERMINAL),
    ],
)
def test_argument_is_escaped_on_terminal(workdir: Path, arguments: tuple[str, ...]) -> None:
    for more in ((), ("--json",)):
        outcome = uflip(*arguments, *more)
        assert outcome.code in (2, 4, 5), outcome.err
        assert OBEYED.search(outcome.out + outcome.err) is None


def test_only_terminal_module_writes_to_terminal() -> None:
    package = Path(__file__).resolve().parents[2] / "python" / "uflip" / "cli"
    for path in package.glob("*.py"):
        if path.name != "terminal.py":
            assert not re.search(r"\bclick\.(echo|secho)\(|\bprint\(", path.read_text()), path.name

"""Do the statements of the tutorial about its examples agree with their output?

test_docs.py runs the examples; this file checks the sentences around them. Each test lists the
sentences that it checks, and every sentence with a figure has a test.
"""

import http.client
import json
import re
import urllib.parse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip

import uflip as api
from uflip.result import Result
from uflip.web.server import serving

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
PLAIN = " ".join(re.sub(r"^```.*?^```", "", PAGE.read_text("utf-8"), flags=re.M | re.S).split())
QUICK_COMMAND = "uflip run sim:demo --scale quick --out results/demo"
NUMBER = re.compile(
    r"\d|\b(twice|times|half|most|more|few|several|above|below|hardly|fewer|drops|nine|four|seconds)\b"
)
NO_CLAIM = (
    "Tutorial: the first measurement in ten minutes",
    "You need a Linux machine with Python 3.11 or later",
    "A few minutes, once",
    "Click the number of the slowest write again, and press + three times:",
    "Below its response times and their causes,",
    "The colour of a dot is the cause that took most of its time.",
    "the thick line below a row is its wait for a free page of that die",
    "Below, each micro-benchmark has a line",
    "below them the micro-benchmarks",
    "set `spare_factor` to 0.4",
    "pauses cost nothing, so it is over in seconds",
    "Now give the device more spare space",
    "a disk that somebody throttles",
    "what the nine are, and their ranges",
)
"""Sentences with such a word that claim no outcome."""
SENTENCES = {
    "baselines": (
        "The output begins with the four baselines, 32 KiB at a time",
        "This runs all nine micro-benchmarks of uFLIP on a simulated 4 GiB SSD, in virtual time",
    ),
    "spread": (
        "`p50` (half of the I/Os were not slower)",
        "The mean is above the median, and the slowest write takes several times as long",
        "most writes are cheap, a few are expensive",
        "The slowest read takes about twice as long as the quickest.",
        "behind it writes spread over a much wider range than reads, and a few stand high above",
    ),
    "start_up": ("The shaded part is the start-up, of cheap writes only",),
    "pause": ("with a long enough pause after each write, nearly all are as cheap as they can be",),
    "lines": (
        "the mean at the first value of its parameter, a sparkline, and the mean at the last",
    ),
    "slowest": (
        "they waited for garbage collection, which hardly any other write did",
        "On a simulated device the parts sum to the response time, to the nanosecond.",
    ),
    "inside": ("It waited until garbage collection had made a page free",),
    "play": (
        "of the 64 pages of a block 23 are valid when it is collected, not 45",
        "the write amplification falls from 3.33 to 1.55, and the time that one write in a"
        " hundred exceeds (p99) from 1.72 to 0.44 ms",
    ),
    "why": (
        "More than half of it is garbage collection",
        "is the number of pages programmed per page that the host wrote: several",
        "Fewer pages have to be moved, and the mean drops.",
    ),
    "disk": (
        "At the quick scale all nine micro-benchmarks write 50 GiB to a file of 4 GiB: the runs,"
        " and the random state three times.",
    ),
}
"""Sentences, by the test that checks them."""


def check_sentences(test: str) -> None:
    """Check that the tutorial has the sentences that a test checks."""
    for words in SENTENCES[test]:
        assert words in PLAIN, f"the tutorial does not say {words!r} any more"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tutorial")


@pytest.fixture(scope="module")
def printed_output(folder: Path) -> str:
    assert f"$ {QUICK_COMMAND}" in PAGE.read_text("utf-8")
    words = QUICK_COMMAND.replace("results/demo", str(folder / "results" / "demo")).split()
    outcome = uflip(*words[1:])
    assert outcome.code == 0, outcome.err
    return outcome.out


@pytest.fixture(scope="module")
def demo(folder: Path, printed_output: str) -> Result:
    return api.load(folder / "results" / "demo")


def times_of(result: Result, pattern: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Response times of a baseline of 32 KiB [ns] (n,)."""
    run = next(run for run in result.runs if "baseline-" + pattern in run.id)
    return np.asarray(run.trace().column("response_time_ns")).astype(np.int64)


def pattern(*arguments: str) -> Any:
    outcome = uflip("pattern", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_each_sentence_with_a_figure_has_a_test() -> None:
    prose = re.sub(r"^#.*$|!\[.*?\]\(.*?\)", "", PAGE.read_text("utf-8"), flags=re.M)
    prose = re.sub(r"^```.*?^```", "", prose, flags=re.M | re.S)
    sentences = re.split(r"(?<=[.:;!?])\s+", " ".join(prose.split()))
    held = [words for all_ in SENTENCES.values() for words in all_]
    unchecked = []
    for sentence in filter(NUMBER.search, sentences):
        near = [words for words in (*held, *NO_CLAIM) if words in sentence or sentence in words]
        parts = [p for words in held for p in re.split(r"(?<=[:;])\s+", words) if p in sentence]
        if not near and not parts:
            unchecked.append(sentence)
    assert unchecked == []


def test_baselines_come_first(printed_output: str) -> None:
    check_sentences("baselines")
    assert "demo, 4 GiB" in printed_output
    first = [
        line.split()[0] for line in printed_output.splitlines() if re.match(r"  [SR][RW] ", line)
    ]
    assert first[:4] == ["SR", "RR", "SW", "RW"]
    assert printed_output.index("Baselines at 32 KiB") < printed_output.index("Micro-benchmarks,")
    headings = re.findall(r"^(\w[\w ]*?)   (?:\w+ [−\d]|\w+$)", printed_output, re.M)
    assert len(set(headings)) == 9, headings


def test_lines_show_first_and_last_mean(printed_output: str, demo: Result) -> None:
    check_sentences("lines")
    line = re.search(r"^Granularity.*\n  SR +([\d.]+) +\S+ +([\d.]+)", printed_output, re.M)
    assert line is not None
    means = {
        run.value: np.mean(np.asarray(run.trace().column("response_time_ns")))
        for run in demo.runs
        if run.micro_benchmark == "granularity" and run.pattern == "SR"
    }
    ends = [float(line[1]), float(line[2])]
    assert ends == pytest.approx([means[min(means)] / 1e6, means[max(means)] / 1e6], rel=0.01)


def test_writes_spread_more_than_reads(demo: Result) -> None:
    check_sentences("spread")
    writes, reads = times_of(demo, "RW"), [times_of(demo, name) for name in ("SR", "RR")]
    assert np.mean(writes) > np.median(writes)
    assert writes.max() > 3 * np.median(writes), "several times"
    for each in reads:
        assert 1.5 < each.max() / each.min() < 2.5, "about twice"
        assert writes.max() / writes.min() > 2 * each.max() / each.min(), "a much wider range"
    assert 0 < np.mean(writes > 2 * np.percentile(writes, 95) - np.median(writes)) < 0.02, "a few"


def test_startup_is_cheap(demo: Result) -> None:
    check_sentences("start_up")
    writes = times_of(demo, "RW")
    assert writes[:30].max() < np.median(writes)


def test_pauses_make_writes_cheap(demo: Result) -> None:
    check_sentences("pause")
    paused = [r for r in demo.runs if r.micro_benchmark == "pause" and r.pattern == "RW"]
    longest = max(paused, key=lambda run: run.value)
    times = np.asarray(longest.trace().column("response_time_ns"))
    assert np.mean(times == times_of(demo, "RW").min()) > 0.9


def test_slowest_writes_waited_for_garbage_collection(folder: Path, demo: Result) -> None:
    check_sentences("slowest")
    check_sentences("inside")
    outcome = uflip(
        *["pattern", "sim:demo", "--pattern", "RW", "--io-count", "1000", "--inside"],
        folder / "results/writes",
    )
    assert outcome.code == 0, outcome.err
    with serving([folder / "results"]) as server:
        base = urllib.parse.urlsplit(server.url).path

        def ask(path: str) -> Any:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("GET", f"{base}api/{path}")
            answer = json.loads(connection.getresponse().read())
            connection.close()
            return answer

        results = ask("results")["results"]
        assert len(results) == 2
        for result in results:
            runs = ask(f"result?key={result['key']}")["runs"]
            run = next(run for run in runs if run["pattern"] == "RW")
            query = f"key={result['key']}&run={run['id']}"
            view = ask(f"slowest?{query}&from=0&to={len(times_of(demo, 'RW'))}")
            trait = next(t for t in view["traits"] if t["name"] == "waited for")
            assert trait["value"] == "GC stall"
            assert trait["slow"] > 0.5, "they"
            assert trait["every"] < 0.05, "hardly any other"
            slowest = view["ios"][0]
            assert sum(cause["ns"] for cause in slowest["causes"]) == slowest["response_time_ns"]
            assert slowest["causes"][0]["words"] == "GC stall", "it waited for a free page"
            inside = ask(f"io?{query}&number={slowest['number']}").get("flash", {})
            waited = {each["what"] for each in inside.get("waited_for", ())}
            assert waited <= {"valid-page read", "valid-page program", "erase"}
            assert bool(waited) == ("writes" in result["name"]), "its card names the operations"


def test_more_spare_space_has_the_stated_effect() -> None:
    check_sentences("play")
    options = ("--pattern", "RW", "--io-size", "4KiB", "--io-count", "4000")
    before, after = (pattern(url, *options) for url in ("sim:demo", "sim:demo?spare_factor=0.4"))
    amplification = [round(each["write_amplification"], 2) for each in (before, after)]
    assert amplification == [3.33, 1.55]
    valid = [
        c["pages_relocated"] / c["blocks_collected"]
        for c in (before["counters"], after["counters"])
    ]
    assert [round(each) for each in valid] == [45, 23]
    p99 = [round(each["statistics"]["p99_ns"] / 1e6, 2) for each in (before, after)]
    assert p99 == [1.72, 0.44]
    # ... and Play begins with these.
    first = (PAGE.parents[1] / "web" / "src" / "play.ts").read_text("utf-8")
    assert 'FIRST: Record<string, string> = { io_size: "4KiB", io_count: "4000"' in first


def test_slow_writes_have_the_stated_causes() -> None:
    check_sentences("why")
    options = ("--pattern", "RW", "--io-count", "1000")
    before, after = (
        pattern(url, *options) for url in ("sim:demo", "sim:demo?spare_factor=0.3&gc=greedy")
    )
    causes = before["causes_ns"]
    collected = sum(causes[name] for name in ("relocation_ns", "erase_ns", "free_page_wait_ns"))
    assert collected > sum(causes.values()) / 2
    assert before["write_amplification"] > 2, "several"
    assert after["counters"]["pages_relocated"] < before["counters"]["pages_relocated"]
    assert after["statistics"]["mean_ns"] < before["statistics"]["mean_ns"]


def test_disk_is_written_as_often_as_stated(tmp_path: Path) -> None:
    check_sentences("disk")
    file = f"file:{tmp_path}/scratch.bin"
    outcome = uflip("plan", file, "--size", "4GiB", "--scale", "quick", "--json")
    assert outcome.code == 0, outcome.err
    plan = json.loads(outcome.out)
    first_state = 4 * plan["target_size_bytes"]  # uFLIP §4.1 as in the plan: four drive writes
    assert plan["resets"] + 1 == 3
    assert round((plan["estimate"]["bytes_written"] + first_state) / (1 << 30)) == 50

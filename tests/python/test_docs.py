"""Are the documents complete and true, and do their examples run?

Names come from the registries, so that an undocumented addition fails here.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from command_line import Outcome
from msgspec.structs import replace
from warm import warm

from uflip import _native, models
from uflip.benchmark_options import SCALES
from uflip.cli.main import VERBS
from uflip.data.document import plain
from uflip.data.manifest import Manifest
from uflip.data.spec import table_of
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.errors import EXIT_CODES, UsageError
from uflip.microbench import MICRO_BENCHMARKS, micro_benchmarks_for, varied_micro_benchmarks
from uflip.microbench.experiment import Context
from uflip.microbench.labels import INITIAL_STATES
from uflip.profiles import profile_names
from uflip.profiles.keys import known_keys
from uflip.report.html import SECTIONS
from uflip.report.labels import COUNTERS
from uflip.results import Results, ResultsWriter, host_provenance, summary
from uflip.results.causes import cause_name
from uflip.results.initial_manifest import manifest_of
from uflip.results.run_warnings import CHECKS
from uflip.spec import BASELINES, LOCATIONS, MODES, PARAMETERS, TIMES, baseline, basic
from uflip.stats import PERCENTILES
from uflip.units import format_duration_ns, format_size

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TOP = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*TOP, *sorted(DOCS.rglob("*.md"))]
EXAMPLES = [
    page for page in PAGES if re.search(r"^```\S+ .*\b(run|output)\b", page.read_text(), re.M)
]
SMALL_SIM = "sim:demo?blocks_per_die=64"


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_tool(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run one of the tools as a developer does."""
    command = [sys.executable, ROOT / "tools" / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@cache
def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(name: str, heading: str) -> str:
    """Return the text under a heading, up to the next one of the same depth."""
    match = re.search(rf"^(#+) {re.escape(heading)}$", text_of(name), re.M)
    assert match, f"{name} has no heading {heading!r}"
    text_after = text_of(name)[match.end() :]
    end = re.search(rf"^#{{1,{len(match[1])}}} ", text_after, re.M)
    return text_after[: end.start()] if end else text_after


def code_words(text: str) -> set[str]:
    """Return every word in backticks, alone or as one of several."""
    return {word for quoted in re.findall(r"`([^`\n]+)`", text) for word in quoted.split()}


def table_names(text: str) -> set[str]:
    """Return the names in the first column of all tables."""
    first = re.findall(r"^\| ([^|]*`[^|]*) \|", text, re.M)
    return {word for cell in first for word in re.findall(r"`([^`]+)`", cell)}


def missing(expected: Iterable[str], documented: Iterable[str]) -> list[str]:
    return sorted(set(expected) - set(documented))


# Generated pages


def test_cli_reference_is_current() -> None:
    process = run_tool("gen_cli_reference.py", "--check")
    assert process.returncode == 0, process.stderr


def test_profile_key_tables_are_current() -> None:
    process = run_tool("gen_profile_keys.py", "--check")
    assert process.returncode == 0, process.stderr


def test_drive_counters_table_is_current() -> None:
    process = run_tool("gen_drive_counters.py", "--check")
    assert process.returncode == 0, process.stderr


def test_locations_are_current() -> None:
    process = run_tool("gen_locations.py", "--check")
    assert process.returncode == 0, process.stderr


def test_document_schemas_are_current() -> None:
    process = run_tool("gen_schemas.py", "--check")
    assert process.returncode == 0, process.stderr


# Examples


@pytest.fixture(scope="module")
def warm_program_dir() -> Iterator[Path]:
    """Yield the folder of a preloaded `uflip`; its socket needs a short name."""
    with tempfile.TemporaryDirectory(prefix="uflip-") as folder, warm(Path(folder)) as program_dir:
        yield program_dir


@pytest.mark.parametrize("page", EXAMPLES, ids=page_name)
def test_examples_print_the_shown_output(
    page: Path, warm_program_dir: Path, reproduce: Callable[..., Outcome], tmp_path: Path
) -> None:
    # Reproductions shared with test_reproduce.py are carried out once.
    ids = re.findall(r"^\$ uflip reproduce ([\w-]+)$", page.read_text(encoding="utf-8"), re.M)
    known_outputs = {f"uflip reproduce {name}": output_lines(reproduce(name)) for name in ids}
    (tmp_path / "known.json").write_text(json.dumps(known_outputs))
    process = run_tool(
        "doc_examples.py", "--known", tmp_path / "known.json", "--bin", warm_program_dir, page
    )
    again = f"python tools/doc_examples.py --update {page_name(page)}"
    assert process.returncode == 0, f"{process.stdout}{process.stderr}\nif this is right: {again}"


def output_lines(outcome: Outcome) -> list[str]:
    assert outcome.code == 0
    return [line.rstrip() for line in outcome.out.splitlines()]


def test_how_to_pages_have_examples() -> None:
    names = {page_name(page) for page in EXAMPLES}
    how_to = {page_name(page) for page in DOCS.glob("how-to/*.md")}
    assert {"README.md", "docs/tutorial.md"} | how_to <= names


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_excerpts_match_their_files(page: Path) -> None:
    excerpts = re.findall(
        r"^```\w+ of=(\S+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S
    )
    for path, text in excerpts:
        assert text in (ROOT / path).read_text(encoding="utf-8"), f"{page_name(page)}: {path}"


def test_add_a_pages_show_excerpts_of_files() -> None:
    for name in ("parameter", "cause"):
        page = (DOCS / "how-to" / f"add-a-{name}.md").read_text(encoding="utf-8")
        assert page.count(" of=") >= 6


# Links and paths


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the usual renderers make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    cleaned = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in cleaned}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_internal_links_have_a_target(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_files_and_tests_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    tops = "crates|python|tests|tools|docs|benches|requirements"
    for name in re.findall(rf"`((?:{tops})/[^`\s]*)`", text):
        path, _, test = name.partition("::")
        if "NAME" in path:
            continue
        files = list(ROOT.glob(path.rstrip("/")))
        assert files, f"{path} does not exist"
        assert not test or re.search(rf"\b(fn|def) {test}\b", files[0].read_text()), f"no {name}"


def test_every_page_is_in_the_index() -> None:
    indices = [DOCS / "README.md", DOCS / "design" / "README.md"]
    linked = {
        (index.parent / link).resolve()
        for index in indices
        for link in re.findall(r"\]\(([^)#\s]+)\)", index.read_text(encoding="utf-8"))
    }
    assert missing(map(str, DOCS.rglob("*.md")), [*map(str, linked), str(indices[0])]) == []


def test_api_page_lists_every_public_module() -> None:
    named = re.findall(r"automodule:: (\S+)", text_of("reference/api.md"))
    closed_forms = [f"uflip.models.{name}" for name in models.__all__]
    public = ["uflip", "uflip.spec", "uflip.analysis", "uflip.stats", "uflip.models", *closed_forms]
    assert missing(public, named) == []


def test_pages_named_in_code_exist() -> None:
    for path in [*ROOT.glob("crates/**/*.rs"), *ROOT.glob("python/**/*.py")]:
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / page).exists(), f"{path.name} points to {page}"


# Names


def test_every_command_is_documented() -> None:
    headings = re.findall(r"^## uflip (\w+)$", text_of("reference/cli.md"), re.M)
    assert headings == list(VERBS)


def test_exit_codes_are_documented_with_their_meaning() -> None:
    table = re.findall(
        r"^\| (\d+) \| `(\w+)` \| (.+) \|$", text_of("reference/exit-codes.md"), re.M
    )
    assert {kind: (int(code), meaning) for code, kind, meaning in table} == EXIT_CODES


@pytest.mark.parametrize(
    "name",
    [
        *micro_benchmarks_for("sectors"),
        *varied_micro_benchmarks("today"),
        *varied_micro_benchmarks("iq"),
        *varied_micro_benchmarks("zones"),
        *varied_micro_benchmarks("streams"),
        *varied_micro_benchmarks("inside"),
    ],
)
def test_micro_benchmarks_are_documented_with_their_ranges(name: str) -> None:
    page_text = " ".join(section("reference/micro-benchmarks.md", name).split())
    formats = {
        "bytes": format_size,
        "ns": format_duration_ns,
        "bytes/s": lambda rate: f"{format_size(rate)}/s",
        "state": lambda state: INITIAL_STATES[state],
    }
    for scale in SCALES:
        # A null device can do everything, but has neither zones nor write streams.
        special = {"sim:zns": "zones", "sim:demo?blocks_per_die=128&write_streams=8": "streams"}
        devices = [url for url, suite in special.items() if name in varied_micro_benchmarks(suite)]
        device = (devices or ["null"])[0]
        info = inspect_device(device)
        if name in varied_micro_benchmarks("iq"):  # zones of a small device are smaller
            info = replace(info, capacity_bytes=1 << 40)
        for experiment in MICRO_BENCHMARKS[name].experiments(Context(info, scale, seed=1)):
            values = [run.value for run in experiment.runs]
            first, last = (
                formats.get(experiment.unit, str)(end) for end in (values[0], values[-1])
            )
            phrase = f"{len(values)} values from {first} to {last}"
            assert (phrase if len(values) > 1 else f"1 value: {first}") in page_text
            assert f"`{experiment.parameter}`" in page_text
            assert experiment.pattern in page_text


def test_pattern_parameters_are_documented() -> None:
    page = text_of("reference/patterns.md")
    assert missing(PARAMETERS, table_names(page)) == []
    assert missing([*MODES, *LOCATIONS, *TIMES, *BASELINES], code_words(page)) == []


def test_pattern_defaults_are_those_of_the_engine() -> None:
    page = section("reference/patterns.md", "Basic patterns")
    documented = dict(re.findall(r"^\| `(\w+)` \|[^|\n]*\|[^|\n]*\| ([^|\n]+) \|", page, re.M))
    info = inspect_device("null")
    plain = table_of(resolve(basic("read", "random"), info).spec)
    for name in (
        "time",
        "io_size",
        "io_shift",
        "target_offset",
        "parallel_degree",
        "queue_depth",
        "io_count",
    ):
        assert documented[name] == f"`{plain[name]}`"
    assert (documented["io_ignore"], documented["seed"]) == (
        f"`{plain['io_ignore']}`",
        f"`{plain['seed']}`",
    )
    assert plain["target_size"] == info.capacity_bytes, "the rest of the device"
    ordered = table_of(resolve(basic("read", "ordered"), info).spec)
    partitioned = table_of(resolve(basic("read", "partitioned"), info).spec)
    assert documented["incr"] == f"`{ordered['incr']}`"
    zipf = table_of(resolve(basic("read", "zipf"), info).spec)
    hot = table_of(resolve(basic("read", "hotcold"), info).spec)
    assert documented["skew_percent"] == f"`{zipf['skew_percent']}`"
    for name in ("hot_space_percent", "hot_io_percent"):
        assert documented[name] == f"`{hot[name]}`"
    zones = table_of(resolve(basic("read", "zones"), info).spec)
    for name in ("zone_ios", "open_zones"):
        assert documented[name] == f"`{zones[name]}`"
    assert documented["partitions"] == f"`{partitioned['partitions']}`"
    pause = table_of(resolve(basic("read", "random", time="pause"), info).spec)
    burst = table_of(resolve(basic("read", "random", time="burst"), info).spec)
    assert documented["burst"] == f"`{burst['burst']}`"
    assert (
        documented["pause"] == f"`{pause['pause']}` with `pause`, `{burst['pause']}` with `burst`"
    )


def test_cause_and_counter_names_are_documented() -> None:
    with open_device(SMALL_SIM) as device:
        trace = device.run(basic("write", "random", io_count=8, time="fixed"))
    table = section("reference/results-format.md", "Causes")
    documented = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, re.M))
    # The last one is that of real devices, which have no other.
    causes = [*trace.causes, "device_ns"]
    assert documented == {cause: cause_name(cause) for cause in causes}
    counters = json.loads(trace.counters_json() or "{}")
    assert set(COUNTERS) <= set(counters)
    glossary = text_of("reference/glossary.md")
    for name in ("GC stall", "read-modify-write", "tR, tPROG, tBERS", "precondition", "IOPS"):
        assert name in glossary


# Profiles


def profile_keys(interface: str) -> dict[str, set[str]]:
    """Return table -> its keys, from the known keys of profiles."""
    return {table: {*keys} for table, keys in known_keys(interface).items()}


@pytest.mark.parametrize(
    ("interface", "page"),
    [
        ("block", "reference/profiles.md"),
        ("open_channel", "reference/open-channel-profiles.md"),
    ],
)
def test_documented_profile_keys_match_the_known_keys(interface: str, page: str) -> None:
    expected = profile_keys(interface)
    expected_tables = (
        {*expected, "sources", "twin_errors"} if interface == "block" else set(expected)
    )
    assert set(re.findall(r"^## \[(\w+)\]$", text_of(page), re.M)) == expected_tables
    for table, keys in expected.items():
        documented = table_names(section(page, f"[{table}]"))
        assert (missing(keys, documented), missing(documented, keys)) == ([], []), table


def test_built_in_profiles_are_documented() -> None:
    listed = section("reference/profiles.md", "Built-in profiles")
    assert set(re.findall(r"^- `([\w-]+)`:", listed, re.M)) == set(profile_names())


def known_values(key: str) -> set[str]:
    """Return the values of a profile key, from the error for an unknown one."""
    with pytest.raises(UsageError) as error:
        inspect_device(f"sim:demo?{key}=no-such-name")
    variants = re.findall(r"`([\w-]+)`", error.value.got)
    names = variants or error.value.allowed.split(", ")
    return {name for name in names if re.fullmatch(r"\w+", name)}


@pytest.mark.parametrize(
    ("heading", "key"),
    [("[ftl]", "ftl"), ("[ftl]", "allocator"), ("[gc]", "gc"), ("[state]", "state")],
)
def test_names_in_profiles_are_documented(heading: str, key: str) -> None:
    listed = set(re.findall(r"^- `(\w+)`:", section("reference/profiles.md", heading), re.M))
    assert missing(known_values(key), listed) == []
    everything = known_values("ftl") | known_values("allocator") | known_values("gc")
    assert missing(listed, everything | known_values("state")) == [], "does not exist any more"


@pytest.mark.parametrize("key", ["relocation", "flush", "mapping_cache_policy", "retire"])
def test_values_of_choices_are_documented(key: str) -> None:
    row = re.search(rf"^\| `{key}` .*$", text_of("reference/profiles.md"), re.M)
    assert row
    assert missing(known_values(key), code_words(row[0])) == []


def test_native_registry_is_documented() -> None:
    registry = json.loads(_native.registry_json())
    pages = code_words(text_of("reference/profiles.md")) | code_words(text_of("reference/cli.md"))
    help_text = text_of("reference/cli.md")
    # The counters of a device are results.
    assert (
        missing(registry.pop("counters"), code_words(text_of("reference/results-format.md"))) == []
    )
    for kind, names in registry.items():
        unknown = [name for name in missing(names, pages) if name not in help_text]
        assert unknown == [], kind


# Results


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return a summary with a run of each kind."""
    path = tmp_path_factory.mktemp("results") / "small"
    with open_device(SMALL_SIM) as device:
        context = Context(device.info, "quick", seed=1)
        layouts = [MICRO_BENCHMARKS[name].experiments(context) for name in ("baseline", "mix")]
        runs = [experiments[-1].runs[0] for experiments in layouts]
        writer = ResultsWriter.create(
            path,
            manifest_of(
                device=device.info,
                host=host_provenance(["uflip"]),
                harness={},
                scale="quick",
                seed=1,
                pause_ns=0,
                plan=runs,
            ),
        )
        for run in runs:
            writer.commit(run, device.run(run.spec))
        writer.finish("complete")
    return summary(Results.load(path))


def test_manifest_keys_are_documented() -> None:
    assert (
        missing(
            Manifest.__struct_fields__,
            table_names(section("reference/results-format.md", "The manifest")),
        )
        == []
    )


def test_summary_keys_are_documented(document: dict[str, object]) -> None:
    documented = table_names(section("reference/results-format.md", "The summary"))
    runs = [*document["baselines"], *document["micro_benchmarks"]["mix"]]
    assert missing([*document, *(key for run in runs for key in run)], documented) == []
    assert (
        missing(plain(document["device"]), code_words(text_of("reference/results-format.md"))) == []
    )
    statistics = code_words(section("reference/results-format.md", "The summary"))
    assert missing([*runs[0]["statistics"], *PERCENTILES], statistics) == []


def test_columns_causes_and_counters_are_documented() -> None:
    with open_device(SMALL_SIM) as device:
        trace = device.run(baseline("RW", io_count=10))
    runs = table_names(section("reference/results-format.md", "A run"))
    assert missing(trace.columns, runs) == []
    assert (
        missing(trace.causes, table_names(section("reference/results-format.md", "Causes"))) == []
    )
    counters = json.loads(trace.counters_json() or "{}")
    assert missing(counters, table_names(section("reference/results-format.md", "Counters"))) == []


def test_warnings_are_documented() -> None:
    # Warnings that are not checks of single runs are found in the sources.
    code_pattern = re.compile(r'"code": "(\w+)"|StoredWarning\(\s*"(\w+)"')
    sources = (ROOT / "python" / "uflip").rglob("*.py")
    codes_in_source = {
        name for path in sources for pair in code_pattern.findall(path.read_text()) for name in pair
    }
    codes = {check.code for check in CHECKS} | (codes_in_source - {""})
    documented = table_names(section("reference/results-format.md", "Warnings"))
    assert (missing(codes, documented), missing(documented, codes)) == ([], [])


def test_report_sections_are_documented() -> None:
    page = text_of("reference/report.md")
    assert [heading for _, heading, _ in SECTIONS if f"| {heading} |" not in page] == []


# The project


def test_dependencies_are_documented() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["dependencies"]
    rust = {name for name, value in cargo.items() if "path" not in value}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    requirements = [
        *project["project"]["dependencies"],
        *(name for extra in project["project"]["optional-dependencies"].values() for name in extra),
        *project["dependency-groups"]["development"],
        *project["build-system"]["requires"],
        *(
            line
            for file in ROOT.glob("requirements/*.in")
            for line in file.read_text().splitlines()
        ),
    ]
    matches = (re.match(r"[A-Za-z][\w-]*", text) for text in requirements)
    python = {match[0] for match in matches if match}
    listed = set(re.findall(r"`([\w-]+)`", text_of("dependencies.md")))
    assert missing(rust | python - {"uflip"}, listed) == []


def test_python_packages_are_pinned_with_hashes() -> None:
    """Requirements and their dependencies: each package has one version everywhere."""
    versions: dict[str, set[str]] = {}
    for input_file in ROOT.glob("requirements/*.in"):
        pinned = input_file.with_suffix(".txt").read_text().replace("\\\n", " ")
        lines = [line for line in pinned.splitlines() if line and not line.startswith("#")]
        assert lines, input_file
        for line in lines:
            match = re.match(r"([\w.-]+)(?:\[[^]]*\])?==(\S+)( ;[^-]*)? .*--hash=sha256:", line)
            assert match, line
            # An older Python may need another version, which is listed after the first.
            versions.setdefault(match[1] + (match[3] or ""), set()).add(match[2])
        pins = re.findall(r"(?m)^([\w.-]+)(?:\[[^]]*\])?==(\S+)", input_file.read_text())
        assert pins
        for name, version in pins:
            assert versions.get(name.lower()) == {version}, f"{input_file}: run `make pins`"
    assert [each for each, match in versions.items() if len(match) > 1] == []


def test_crates_use_workspace_dependencies() -> None:
    for path in ROOT.glob("crates/*/Cargo.toml"):
        crate = tomllib.loads(path.read_text())
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, value in crate.get(kind, {}).items():
                assert value.get("workspace"), (
                    f"{name} of {path.parent.name} has a version of its own"
                )


def test_architecture_page_names_every_crate_and_package() -> None:
    tree = section("../ARCHITECTURE.md", "Where things are")
    package = ROOT / "python" / "uflip"
    names = [f"{path.parent.name}/" for path in ROOT.glob("crates/*/Cargo.toml")]
    names += [f"{path.parent.name}/" for path in package.glob("*/__init__.py")]
    names += [path.name for path in package.glob("*.py") if not path.name.startswith("__")]
    assert missing(names, re.findall(r"[\w/]*?(\w+(?:/|\.py))(?=\s)", tree)) == []


def test_version_and_licence_are_consistent() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {cargo['version']}\n" in citation
    assert cargo["version"] in (ROOT / "CHANGELOG.md").read_text()
    assert cargo["license"] == project["license"] == "MIT OR Apache-2.0"
    assert "the uflip authors" in (ROOT / "LICENSE-MIT").read_text()
    assert "Apache License" in (ROOT / "LICENSE-APACHE").read_text()


def test_pictures_are_small() -> None:
    pictures = list((DOCS / "images").glob("*"))
    assert pictures
    assert [path.name for path in pictures if path.stat().st_size > 300_000] == []

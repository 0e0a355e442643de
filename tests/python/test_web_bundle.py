"""Is the explorer's page built from its sources, small, and self-contained?"""

import gzip
import json
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from starlette.routing import Route

from uflip.play.stage import Stage
from uflip.report.figures import palette
from uflip.results.device_log import OPERATION_NAMES
from uflip.web.app import _routes
from uflip.web.open_results import Folders, OpenResults

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
STATIC = ROOT / "python" / "uflip" / "web" / "static"
FIRST_LOAD_BYTES = 300_000


def sources() -> list[Path]:
    """Return the files that `web/build.mjs` digests, in its order."""
    others = ("build.mjs", "package-lock.json", "package.json", "tsconfig.json")
    return [*sorted((WEB / "src").iterdir()), *(WEB / name for name in others)]


def test_page_is_built_from_its_sources() -> None:
    digest = sha256()
    for path in sources():
        digest.update(f"{path.relative_to(WEB)}\n".encode())
        digest.update(path.read_bytes())
    first = (STATIC / "app.js").read_text(encoding="utf-8").partition("\n")[0]
    assert first == f"// of sources {digest.hexdigest()}", "web/ is newer: `make web`"
    assert (STATIC / "index.html").read_bytes() == (WEB / "src" / "index.html").read_bytes()


def test_first_load_is_small() -> None:
    loaded = [gzip.compress(path.read_bytes()) for path in STATIC.iterdir()]
    assert len(loaded) == 3
    assert sum(map(len, loaded)) < FIRST_LOAD_BYTES


def test_page_loads_nothing_from_elsewhere() -> None:
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        addresses = set(re.findall(r"\bhttps?://[^\s\"'`)]+", text))
        allowed = {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}
        assert {each.rstrip("/") for each in addresses} <= allowed
        assert "@import" not in text
    licence = "Has uPlot in it:\nThe MIT License"
    assert licence in (STATIC / "app.js").read_text(), "the licence requires this notice"


def test_sources_never_insert_markup() -> None:
    """Elements are made by `dom.ts`, and text enters them as text."""
    for path in (WEB / "src").glob("*.ts"):
        text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        matches = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text
        )
        assert matches == [], path.name


def test_colours_match_report() -> None:
    style = (WEB / "src" / "app.css").read_text(encoding="utf-8")
    light, dark = style.split("prefers-color-scheme: dark", 1)
    for color, (name, night) in palette.THEME.items():
        assert f"--{name}: {color};" in light, name
        assert f"--{name}: {night};" in dark.split("* {", 1)[0], name
    command = [sys.executable, ROOT / "tools" / "gen_causes.py", "--check"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "#" not in re.sub(r"`#\$", "", (WEB / "src" / "paint.ts").read_text(encoding="utf-8"))


def test_api_types_match_answers(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "tools" / "gen_api_types.py", "--check"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    text = (WEB / "src" / "api_types.ts").read_text(encoding="utf-8")
    typed = set(re.findall(r"^  (\w+): ", text.partition("interface Answers {")[2], re.M))
    stage = Stage()
    app = _routes(OpenResults(Folders([tmp_path])), stage, "token", [])
    paths = [route.path for route in app.routes if isinstance(route, Route)]
    requests = {path.removeprefix("/token/api/") for path in paths if "/api/" in path}
    stage.close()
    # Pictures are arrays, described in api.ts; actions answer with what `played` has.
    assert requests - typed == {
        "window",
        "addresses",
        "gantt",
        "play/begin",
        "play/remedy",
        "play/stop",
    }
    assert typed <= requests


def test_activity_has_one_colour_in_all_charts() -> None:
    """An erase is an erase, whether an I/O waits for it or a die does it; a wait is not."""
    text = (WEB / "src" / "palette.ts").read_text(encoding="utf-8")
    tables = {
        name: json.loads(table)
        for name, table in re.findall(r"export const (\w+) = (.*) as const;", text)
    }
    causes, operations = (
        tables["ACTIVITIES"],
        dict(zip(OPERATION_NAMES, tables["OPERATIONS"], strict=True)),
    )
    same = {
        "host read": "cell_read_ns",
        "host program": "cell_program_ns",
        "host program resumed": "cell_program_ns",
        "read-modify-write": "read_to_modify_ns",
        "valid-page program": "relocation_ns",
        "copy-back": "relocation_ns",
        "merge program": "merge_ns",
        "erase": "erase_ns",
        "erase resumed": "erase_ns",
        "metadata program": "metadata_ns",
        "mapping program": "mapping_ns",
        "scrub program": "scrub_ns",
        "program in vain": "retry_ns",
    }
    assert {what: operations[what] for what in same} == {
        what: causes[cause] for what, cause in same.items()
    }
    # Pages that are read to be moved are paler, and look like nothing else.
    pale = {operations[f"{what} read"] for what in ("valid-page", "merge", "mapping", "scrub")}
    assert len(pale) == 4
    assert pale.isdisjoint(causes.values())


def test_packages_are_pinned_without_registry() -> None:
    packages = json.loads((WEB / "package.json").read_text())["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in packages.values())
    lock = json.loads((WEB / "package-lock.json").read_text())
    assert not [name for name, each in lock["packages"].items() if "resolved" in each]
    listed = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert [name for name in packages if f"`{name}`" not in listed] == []

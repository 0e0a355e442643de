"""Does the table of instructions name the simulator's source files?"""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    path = ROOT / "benches" / "instructions.py"
    spec = importlib.util.spec_from_file_location("instructions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_of_stages_exist(program: ModuleType) -> None:
    names = [name for _, parts in program.STAGES for name in parts if name.startswith("crates/")]
    assert len(names) > 10
    missing = [name for name in names if not (ROOT / name).exists()]
    assert not missing


@pytest.mark.parametrize("crate", ["bench", "core", "engine", "sim"])
def test_every_source_file_belongs_to_a_stage(program: ModuleType, crate: str) -> None:
    files = (ROOT / "crates" / crate / "src").glob("**/*.rs")
    assert [file for file in files if program.stage_of(str(file)) == program.NO_SOURCE] == []


@pytest.mark.parametrize(
    ("file", "stage"),
    [
        ("crates/sim/src/device/write_backlog.rs", "garbage collection and its operations"),
        ("crates/sim/src/device/timed_flash.rs", "garbage collection and its operations"),
        ("crates/sim/src/device/io_path.rs", "host I/Os: accepted, split, completed"),
        ("crates/sim/src/timeline/calendar.rs", "event calendar"),
        ("crates/core/src/random.rs", "host workload: draws and submits addresses"),
        (
            "../sysdeps/x86_64/multiarch/memmove-vec-unaligned-erms.S",
            "memory copies (time accounts, events)",
        ),
        ("???", "without source line"),
    ],
)
def test_stage_of_file(program: ModuleType, file: str, stage: str) -> None:
    assert program.stage_of(file) == stage

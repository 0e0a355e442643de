"""Does every hostile file and command line end as it must: no crash, no hang, a clear message?

The cases are the tables in tests/hostile; each runs in a process of its own. With UFLIP_SOAK=1 each
edit of a document is tried with every command that reads it; otherwise one in three, with the next
command in turn.
"""

import os
import queue
import shlex
import threading
from collections import Counter
from pathlib import Path

import pytest
from forked import Server
from hostile_cases import Bench, Case, command_cases, edit_cases, make_documents

from uflip.cli.main import VERBS

AT_LENGTH = pytest.mark.skipif(
    "UFLIP_SOAK" not in os.environ, reason="takes minutes: part of `make soak` (UFLIP_SOAK=1)"
)
CASES = [*command_cases(), *edit_cases(whole="UFLIP_SOAK" in os.environ)]
FILES = sorted({case.place.partition(":")[0] for case in CASES})


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What went wrong, by table: all cases are run at once, a server for each processor."""
    folder = tmp_path_factory.mktemp("hostile")
    made = folder / "made"
    made.mkdir()
    with Server() as server:
        make_documents(made, server)
    waiting: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in CASES:
        waiting.put(case)
    found: dict[str, list[str]] = {name: [] for name in FILES}
    workers = [
        threading.Thread(target=_work, args=(folder / str(number), made, waiting, found))
        for number in range(len(os.sched_getaffinity(0)))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found


def _work(
    folder: Path, made: Path, waiting: "queue.SimpleQueue[Case]", found: dict[str, list[str]]
) -> None:
    with Server() as server:
        bench = Bench(folder, server, made)
        while True:
            try:
                case = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                wrong = bench.run(case)
            except Exception as error:  # the table is wrong, or the server ended
                wrong = [repr(error)]
            if wrong:
                found[case.place.partition(":")[0]].append(f"{case}\n    {'; '.join(wrong)}")


@AT_LENGTH
@pytest.mark.parametrize("name", FILES)
def test_every_case_ends_with_a_documented_code_and_a_clear_message(
    failures: dict[str, list[str]], name: str
) -> None:
    assert failures[name] == [], "\n".join(["", *failures[name]])


def test_every_verb_meets_hostile_input() -> None:
    words = [word for case in CASES for word in shlex.split(case.command)[:2] if "=" not in word]
    tried = Counter(words)
    assert len(CASES) >= 500
    assert {verb: tried[verb] for verb in VERBS if tried[verb] < 2} == {}

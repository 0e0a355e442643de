"""Does every hostile file and command line end without crash or hang, with a clear message?

The cases are the tables in tests/hostile; each runs in a process of its own. `make soak`
(UFLIP_SOAK=1) tries every edit of a document with every command that reads it, some 5,600 cases;
otherwise `SAMPLE` of them are drawn by `UFLIP_SEED`, which a failure prints.
"""

import os
import queue
import random
import shlex
import threading
from collections import Counter
from pathlib import Path

import pytest
from fork_server import Server
from hostile_cases import Bench, Case, command_cases, edit_cases, make_documents

from uflip.cli.main import VERBS

SAMPLE = 200
# The same cases each time: an unrelated change does not reveal faults of old code here.
SEED = int(os.environ.get("UFLIP_SEED") or 1)
ALL = [*command_cases(), *edit_cases()]
CASES = ALL if "UFLIP_SOAK" in os.environ else random.Random(SEED).sample(ALL, SAMPLE)


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the failures: all cases run in parallel, with a server for each processor."""
    folder = tmp_path_factory.mktemp("hostile")
    documents = folder / "made"
    documents.mkdir()
    with Server() as server:
        make_documents(documents, server)
    cases: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in CASES:
        cases.put(case)
    failed: list[str] = []
    workers = [
        threading.Thread(target=_run_cases, args=(folder / str(number), documents, cases, failed))
        for number in range(len(os.sched_getaffinity(0)))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return failed


def _run_cases(
    folder: Path, documents: Path, cases: "queue.SimpleQueue[Case]", failed: list[str]
) -> None:
    with Server() as server:
        bench = Bench(folder, server, documents)
        while True:
            try:
                case = cases.get_nowait()
            except queue.Empty:
                return
            try:
                faults = bench.run(case)
            except Exception as error:  # the table is wrong, or the server ended
                faults = [repr(error)]
            if faults:
                failed.append(f"{case}\n    {'; '.join(faults)}")


def test_every_case_has_a_documented_code_and_a_clear_message(failures: list[str]) -> None:
    assert failures == [], "\n".join([f"UFLIP_SEED={SEED}", *failures])


def test_every_verb_has_hostile_cases() -> None:
    words = [word for case in ALL for word in shlex.split(case.command)[:2] if "=" not in word]
    tried = Counter(words)
    assert {verb: tried[verb] for verb in VERBS if tried[verb] < 2} == {}

"""Is everything that a flush acknowledged in the data file after the server was killed?

A client overwrites blocks with rising numbers and flushes now and then; the server is killed at
some moment, 200 times (2,000 times in `make soak`). Each block must then hold a number not older
than the last flush that was answered. Servers are forks of an interpreter that is warm, which
takes milliseconds where a new one takes half a second.
"""

import multiprocessing
import os
import random
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import nbd
from nbd import Client, accepts_connections, request

from uflip.cli.main import main

TRIALS = 2000 if "UFLIP_SOAK" in os.environ else 200
SEED = int(os.environ.get("UFLIP_SEED") or 1)
BLOCKS, BLOCK = 256, 4096
DEVICE = "sim:demo?blocks_per_die=64"
CONTEXT = multiprocessing.get_context("forkserver")
# The warm interpreter is to import nothing of the tests: it does not know their folder.
CONTEXT.set_forkserver_preload(["uflip.cli.main", "uflip.cli.serve"])


class Written:
    """The blocks that were sent, and those known to be durable: block -> number."""

    def __init__(self) -> None:
        self.sent = dict.fromkeys(range(BLOCKS), 0)
        self.durable = dict(self.sent)


def work(client: Client, rng: random.Random, written: Written, requests: int) -> None:
    """Write, flush, and write durably."""
    for number in range(1, requests + 1):
        block = rng.randrange(BLOCKS)
        durable = rng.random() < 0.1
        written.sent[block] = number
        data = struct.pack(">Q", number) * (BLOCK // 8)
        acknowledged = dict(written.sent)
        assert client.write(block * BLOCK, data, nbd.FUA if durable else 0) == 0
        if durable:
            written.durable[block] = number
        elif rng.random() < 0.1:
            assert client.do(nbd.FLUSH) == 0
            written.durable = acknowledged


@contextmanager
def serving(folder: Path) -> Iterator[ForkServerProcess]:
    """Serve until the block is left; then the server is killed."""
    options = ("--socket", folder / "s", "--data", folder / "disk")
    arguments = ["serve", DEVICE, *map(str, options), "--speed", "0", "--quiet"]
    process = CONTEXT.Process(target=main, args=(arguments,))
    process.start()
    until = time.monotonic() + nbd.PATIENCE_S * 3
    while not accepts_connections("s"):
        assert process.is_alive()
        assert time.monotonic() < until
        time.sleep(0.001)
    try:
        yield process
    finally:
        process.kill()
        process.join()
        process.close()
        Path("s").unlink()


def test_flushed_blocks_survive_kill(in_memory: Path) -> None:
    checked = 0
    for trial in range(TRIALS):
        rng = random.Random(f"{SEED} {trial}")
        written = Written()
        with serving(in_memory) as process, Client("s") as client:
            client.go()
            work(client, rng, written, rng.randint(1, 100))
            # Something is under way when it is killed.
            with suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(rng.randint(0, 20)):
                    block = rng.randrange(BLOCKS)
                    written.sent[block] = 10_000
                    data = struct.pack(">Q", 10_000) * (BLOCK // 8)
                    client.send(request(nbd.WRITE, block * BLOCK, BLOCK), data)
            assert process.is_alive(), "it serves until it is killed"
        with Path("disk").open("rb") as disk:
            content = disk.read(BLOCKS * BLOCK)
        Path("disk").unlink()
        trial_name = f"UFLIP_SEED={SEED}, trial {trial}"
        for block, least in written.durable.items():
            numbers = struct.unpack_from(f">{BLOCK // 8}Q", content, block * BLOCK)
            # A write that was not acknowledged may be there in part.
            assert all(least <= number <= written.sent[block] for number in numbers), (
                f"{trial_name}, block {block}: {set(numbers)}, durable was {least}"
            )
            checked += least > 0
    assert checked > TRIALS * 10, "there is something to lose"

"""What a benchmark of an open-channel device leaves on disk.

    FOLDER/oc.json               device, host, scale, status, what was found
    FOLDER/ledger.jsonl          the digest of everything else, see `uflip.data.ledger`
    FOLDER/runs/NAME.parquet     the log of each job, written when it is over
    FOLDER/report.html           figures and tables

A folder that exists is never touched. After an error or Ctrl-C what is there stays, and `oc.json`
says what failed, and where.
"""

import json
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from uflip import _native
from uflip.data import ledger
from uflip.errors import InterruptedRun, ResultsError, UflipError, native_errors
from uflip.results import atomic, outputs
from uflip.results.ledger import LedgerWriter

FORMAT_VERSION = 2
"""Of `oc.json`; 1: first; 2: with a ledger, and the `folder_id` that it is of."""

MANIFEST = "oc.json"


class Folder:
    """A new folder that logs are put into as they come.

    Parameters
    ----------
    path : Path
        Must not exist.
    header : dict
        What is known before: device, host, scale.

    Raises
    ------
    ResultsError
        If it exists or cannot be made.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self._header = header
        self._id = secrets.token_hex(16)
        self._plan = ledger.digest_of(header)
        outputs.refuse_results(path, "results", f"--out {path}")
        try:
            path.mkdir(parents=True)  # never one that exists, with things of others in it
            (path / "runs").mkdir()
            self._ledger = LedgerWriter.create(path, self._id, self._plan)
        except OSError as error:
            raise ResultsError(
                "The result folder cannot be made",
                where=f"--out {path}",
                got=error.strerror or str(error),
                allowed="a new name in a folder that can be written",
                action="choose another --out; nothing is ever overwritten",
            ) from None
        self._jobs: list[str] = []
        self._write("running", {})

    def keep(self, name: str, trace: _native.FlashTrace) -> None:
        """Write the log of a job; it is there whole or not at all."""
        run = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
        file = self.path / "runs" / f"{run}.parquet"
        partial = atomic.temporary_name(file)
        metadata = {"name": name, "id": run, "folder_id": self._id}
        try:
            with native_errors():
                trace.write_parquet(str(partial), json.dumps(metadata))
            ((size, digest, _),) = _native.digest_files([str(partial)])
            job = ledger.digest_of(json.loads(trace.job_json))
            self._ledger.append(ledger.Run(run, size, digest, job))
            atomic.publish(partial, file)
        except (OSError, UflipError) as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise _unwritten(file, error) from error
        self._jobs.append(file.name)

    def finish(self, found: dict[str, Any]) -> None:
        """Say that everything is there."""
        self._write("complete", found)

    def fail(self, error: BaseException) -> None:
        """Say what failed, or that it was interrupted; logs that are there stay."""
        parts = error.parts() if isinstance(error, UflipError) else {"what": str(error)}
        ended = isinstance(error, (KeyboardInterrupt, InterruptedRun))
        # The disk may be full: then there is no second error to tell, the first one says it.
        with suppress(ResultsError):
            self._write("interrupted" if ended else "failed", {"error": parts})

    def _write(self, status: str, found: dict[str, Any]) -> None:
        whole = {
            "format_version": FORMAT_VERSION, "folder_id": self._id, "status": status,
            **self._header, "jobs": self._jobs, **found,
        }  # fmt: skip
        content = (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode()
        try:
            self._ledger.append(ledger.Document(len(content), _native.digest(content), self._plan))
            atomic.write_file(self.path / MANIFEST, content)
        except OSError as error:
            raise _unwritten(self.path / MANIFEST, error) from error


def _unwritten(path: Path, error: OSError | UflipError) -> ResultsError:
    told = error.strerror if isinstance(error, OSError) else error.got or error.what
    return ResultsError(
        "The results cannot be written",
        where=str(path),
        got=told or str(error),
        allowed="a writable folder with free space",
        action="free some space and start again with another --out; the logs before it are kept",
    )

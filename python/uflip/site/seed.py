"""The first results of a new site: benchmarks of all built-in simulated devices, and of a file.

This machine measures them, and they are submitted like all results: without values that identify
the machine, examined, computed again from the traces. Every page labels simulated devices as such,
and a file as a file; they belong to the account `seed`, which has no token.

Published results are not measured again, and interrupted benchmarks resume. The site's folder has
the state::

    .seed/DEVICE-…/            a benchmark in progress: `result`, and the measured file
    .seed/DEVICE-….published   the id of the result
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlalchemy import select

from uflip import _native
from uflip.benchmark import BenchmarkRequest, OnEvent, begin, ignore, resume
from uflip.data import ledger, manifest
from uflip.errors import DeviceError, InterruptedRun
from uflip.profiles import profile_names, zoned_names
from uflip.results import Results
from uflip.safe_files import write_file
from uflip.site.accounts import new_token
from uflip.site.client import missing, prepare
from uflip.site.tables import Account, ResultRecord
from uflip.site.upload_files import bodies

if TYPE_CHECKING:
    from uflip.site.site import Site

ACCOUNT = "seed"
FILE = "file"
"""Name for a new file beside the site's."""
FILE_BYTES = 256 << 20
PROGRESS_FOLDER = ".seed"
"""The subfolder of a site that stores the progress of seeding."""


@dataclass(frozen=True)
class SeededResult:
    """A published result: the device, its id on the site, whether it was measured now."""

    device: str
    result: str
    new: bool


def default_devices() -> list[str]:
    """Return the devices that are measured by default."""
    return [*(f"sim:{name}" for name in profile_names()), FILE]


def check(devices: Iterable[str], scale: str, only: Sequence[str] | None) -> None:
    """Refuse invalid options before anything is created."""
    for device in devices or default_devices():
        request = replace(_request(device, Path()), scale=scale, only=only)
        if device != FILE and not request.is_open_channel:
            with suppress(DeviceError):  # does not stop the others
                request.plan(request.inspect())


def seed(
    site: "Site",
    devices: Iterable[str],
    *,
    scale: str = "quick",
    only: Sequence[str] | None = None,
    on_event: OnEvent = ignore,
) -> Iterator[SeededResult]:
    """Measure devices one after the other, and publish each result on a site.

    Published results of the same device, scale, micro-benchmarks and version stay as they are; an
    interrupted benchmark resumes.

    Parameters
    ----------
    site : Site
        The site for the results.
    devices : iterable of str
        As `uflip run` names them, or `FILE`.
    scale : str
        As `uflip run --scale`.
    only : sequence of str, optional
        The micro-benchmarks to run; by default all.
    on_event : callable
        Called with the events of the benchmarks, see `uflip.benchmark.events`.
    """
    account = _account(site)
    for device in devices:
        # Beside the site's files, so that a measured file is on the same storage as the site.
        progress = site.root / PROGRESS_FOLDER / _progress_name(device, scale, only)
        note = progress.with_name(f"{progress.name}.published")
        if (published := _published_id(site, note)) is not None:
            yield SeededResult(device, published, new=False)
            continue
        progress.mkdir(parents=True, exist_ok=True)
        request = replace(_request(device, progress), scale=scale, only=only)
        try:
            folder = _measure(request, progress / "result", on_event)
        except DeviceError:
            shutil.rmtree(progress)
            raise
        except InterruptedRun as error:
            action = "give the same command again: it resumes"
            raise type(error)(error.what, where=device, action=action) from None
        result, new = _publish(site, account, folder)
        write_file(note, result.encode())
        shutil.rmtree(progress)
        yield SeededResult(device, result, new)


def _progress_name(device: str, scale: str, only: Sequence[str] | None) -> str:
    """Return a name for a device with these options and the version of uflip."""
    options = [device, scale, None if only is None else sorted(only)]
    versions = [_native.__version__, _native.SIMULATOR_VERSION]
    stem = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")[:60]
    return f"{stem}-{ledger.digest_of([options, versions])[:12]}"


def _published_id(site: "Site", note: Path) -> str | None:
    """Return the id of a published result; None if it is not public any more."""
    try:
        result = note.read_text()
    except FileNotFoundError:
        return None
    with site.sessions() as session:
        record = session.get(ResultRecord, result)
        return result if record is not None and record.published_utc is not None else None


def _measure(request: BenchmarkRequest, folder: Path, on_event: OnEvent) -> Path:
    if not (folder / manifest.FILE_NAME).exists():
        return begin(request, folder, on_event)
    if Results.load(folder).manifest.status != "complete":
        resume(folder, on_event=on_event)
    return folder


def _account(site: "Site") -> Account:
    with site.sessions.begin() as session:
        named = select(Account).where(Account.name == ACCOUNT)
        if session.scalar(named) is None:
            new_token(session, ACCOUNT, "submitter")  # the token is discarded
        return session.scalars(named).one()


def _request(device: str, scratch: Path) -> BenchmarkRequest:
    if device == FILE:
        return BenchmarkRequest(device=f"file:{scratch / 'file.bin'}", size=FILE_BYTES)
    zoned = device.removeprefix("sim:") in zoned_names()
    return BenchmarkRequest(device=device, suite="zones" if zoned else None)


def _publish(site: "Site", account: Account, folder: Path) -> tuple[str, bool]:
    with TemporaryDirectory(dir=folder.parent) as scratch:
        prepared = prepare(folder, Path(scratch))
        submission = site.intake.begin(account, prepared.files)
        received = site.intake.received(account, submission, prepared.files)
        for some in bodies(missing(prepared, received)):
            site.intake.receive(account, submission, some)
        committed = site.intake.commit(account, submission, publish=True)
        return committed.id, committed.new

"""A results site in this process, with helpers that submit and check a result."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import select

from uflip.results import Results
from uflip.site.accounts import new_token
from uflip.site.client import PreparedResult, missing
from uflip.site.intake import CommittedUpload
from uflip.site.site import Site, open_site
from uflip.site.tables import Account, ResultRecord
from uflip.site.upload_files import bodies


@contextmanager
def open_test_site(folder: Path, database: str | None = None) -> Iterator[Site]:
    site = open_site(folder, database)
    with site.sessions.begin() as session:
        new_token(session, "alice", "submitter")
    yield site
    site.close()


def alice(site: Site) -> Account:
    """Return the account that submits."""
    with site.sessions() as session:
        return session.scalars(select(Account)).one()


def upload_files(site: Site, prepared: PreparedResult) -> str:
    """Send the files of a result; returns the id of the upload."""
    account = alice(site)
    upload = site.intake.begin(account, prepared.files)
    for body in bodies(missing(prepared, site.intake.received(account, upload, prepared.files))):
        site.intake.receive(account, upload, body)
    return upload


def submit(site: Site, prepared: PreparedResult) -> CommittedUpload:
    """Publish a result."""
    return site.intake.commit(alice(site), upload_files(site, prepared), publish=True)


def check_whole(site: Site, result: str, prepared: PreparedResult) -> None:
    """Check that a result matches the submission: its row, files by digest, and folder."""
    with site.sessions() as session:
        digests = [each.digest for each in session.get_one(ResultRecord, result).files]
    assert sorted(digests) == sorted(each.digest for each in prepared.files)
    assert all(map(site.blobs.exists, digests)), "files by their digests"
    assert site.folders.summary_text(result)
    folder = site.folders.path_of(result)
    for each in prepared.files:
        assert (folder / each.path).stat().st_size == each.bytes, each.path
    Results.load(folder)

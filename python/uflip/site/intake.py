"""Uploads: begun with a list of files, filled, examined, committed as a result.

```text
begin ─▶ list of missing files ─▶ parts of them, in any number of sessions ─▶ commit
                                                         │ examiner: does it hold? │
                          folder under its name (rename) ◀──────────────┘
                  row of a result in place of the upload's (one transaction) ─▶ acknowledged
```

A kill between two of these steps leaves a folder without a row, or parts of an upload: `blob_refs`
removes the first when a server starts, and the client resumes the second. `folders` makes the
folder.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from uflip.errors import ResultsError, UflipError, UsageError
from uflip.results.initial_manifest import utc_now
from uflip.site import blob_refs, publishing
from uflip.site.accounts import has_role, log_action
from uflip.site.blobs import Blobs
from uflip.site.folders import ResultFolders
from uflip.site.publishing import device_of, remove_unused
from uflip.site.rows import ExaminedFolder
from uflip.site.tables import (
    AbsentError,
    Account,
    FileRecord,
    ResultRecord,
    Submission,
    words_of,
)
from uflip.site.upload_files import FilePart, UploadFile, check_names, result_id

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

MAX_OPEN_UPLOADS = 20
"""Uploads of one account that have begun and are not committed."""
MAX_COMMIT_ATTEMPTS = 5
"""Attempts to commit while other servers insert the same rows, as that of the device."""


@dataclass(frozen=True)
class CommittedUpload:
    """The result of a committed upload."""

    id: str  #: The id of the result.
    new: bool  #: Whether the site did not have this content before.
    #: Whether it belongs to the sender; else another account submitted the same content first.
    own: bool
    published: bool  #: Whether everybody sees it.


class Intake:
    """Accepts uploads and stores results."""

    def __init__(
        self, sessions: "sessionmaker[Session]", blobs: Blobs, folders: ResultFolders
    ) -> None:
        self._sessions = sessions
        self._blobs = blobs
        self._folders = folders

    def begin(self, account: Account, files: Sequence[UploadFile]) -> str:
        """Begin an upload, or find the one that began with the same files; return its id."""
        check_names(files)
        self._check_lengths(account, files)
        with self._sessions.begin() as session:
            blob_refs.lock(session)
            open_uploads = list(
                session.scalars(select(Submission).where(Submission.account_id == account.id))
            )
            offered = [asdict(each) for each in sorted(files, key=lambda each: each.path)]
            for each in open_uploads:
                if each.files == offered:
                    return each.id
            if len(open_uploads) >= MAX_OPEN_UPLOADS:
                raise UsageError(
                    "There are too many uploads that are not finished",
                    got=str(len(open_uploads)),
                    allowed=str(MAX_OPEN_UPLOADS),
                    action="finish one, or end it: DELETE /api/v1/submissions/ID",
                )
            upload = Submission(
                id=secrets.token_hex(16), account_id=account.id, begun_utc=utc_now(), files=offered
            )
            session.add(upload)
            return upload.id

    def offered(self, account: Account, submission: str) -> list[UploadFile]:
        """Return the files of an upload."""
        with self._sessions() as session:
            upload = session.get(Submission, submission)
            if upload is None or upload.account_id != account.id:
                raise _no_upload(submission)
            return [UploadFile(**each) for each in upload.files]

    def received(
        self, account: Account, submission: str, offered: Sequence[UploadFile]
    ) -> dict[str, int]:
        """Return the number of bytes of each file that need not be sent, by its digest.

        These are all bytes of a file in a result that the account may see, or the bytes it sent.
        The upload is not looked up: a concurrent commit of the same files may have ended it since
        its files were offered.
        """
        visible = blob_refs.visible(self._sessions, account, (each.digest for each in offered))
        return {
            each.digest: (self._blobs.length(each.digest) if each.digest in visible else None)
            or self._blobs.received(submission, each.digest, each.bytes)
            for each in offered
        }

    def receive(
        self, account: Account, submission: str, parts: Sequence[FilePart]
    ) -> dict[str, int]:
        """Take parts of files; see `Blobs.receive`."""
        sizes = {each.digest: each.bytes for each in self.offered(account, submission)}
        unknown = next((part.digest for part in parts if part.digest not in sizes), None)
        if unknown is not None:
            raise UsageError(
                "This upload has no such file",
                where=unknown,
                action="add it to the list of files of the upload first",
            )
        with self._while_open(account, submission):
            return self._blobs.receive(submission, [(part, sizes[part.digest]) for part in parts])

    @contextmanager
    def _while_open(self, account: Account, submission: str) -> Iterator[None]:
        """Report that an upload has ended, rather than an error that follows from its end.

        A concurrent commit of the same upload removes its row, then its files.
        """
        try:
            yield
        except (UflipError, OSError):
            self.offered(account, submission)
            raise

    def abandon(self, account: Account, submission: str) -> None:
        """End an upload, and remove the received bytes."""
        offered = self.offered(account, submission)
        with self._sessions.begin() as session:
            session.execute(delete(Submission).where(Submission.id == submission))
        self._blobs.remove_upload(submission)
        blob_refs.remove_unreferenced(
            self._sessions, self._blobs, (each.digest for each in offered)
        )

    def commit(self, account: Account, submission: str, *, publish: bool) -> CommittedUpload:
        """Examine an upload and store it as a result, computed again from the traces."""
        files = self.offered(account, submission)
        self._check_lengths(account, files)  # also of files that arrived after the upload began
        with self._while_open(account, submission):
            self._check_complete(files, self.received(account, submission, files))
        result, examined = result_id(files), None
        for attempts_left in reversed(range(MAX_COMMIT_ATTEMPTS)):
            if examined is None and not self._is_stored(files):
                examined = self._examine(result, files)
            try:
                with self._sessions.begin() as session:
                    record = _existing_result(session, files)
                    if new := record is None:
                        if examined is None:
                            continue  # it was deleted just now
                        record = _row(session, account, result, files, examined)
                    self._remove_upload(session, submission, new=new)
                    own = record.account_id == account.id
                    if publish and (own or has_role(account, "admin")):
                        publishing.publish(session, account, record)
                    committed = CommittedUpload(
                        record.id, new, own, record.published_utc is not None
                    )
            except IntegrityError:
                # Another server, or another connection, was first with the result or its device.
                if not attempts_left:
                    raise
            else:
                self._blobs.remove_upload(submission)
                return committed
        raise AssertionError("the last try ends in a result or an error")

    def _check_complete(self, files: Sequence[UploadFile], received: Mapping[str, int]) -> None:
        missing = [
            each.path
            for each in files
            if received[each.digest] != each.bytes or not self._blobs.exists(each.digest)
        ]
        if missing:
            raise UsageError(
                "A file is missing",
                where=missing[0],
                got=f"{len(missing)} of {len(files)} are missing",
                action="send the missing files, then commit",
            )

    def _is_stored(self, files: Sequence[UploadFile]) -> bool:
        with self._sessions() as session:
            return _existing_result(session, files) is not None

    def _examine(self, result: str, files: Sequence[UploadFile]) -> ExaminedFolder:
        """Make and examine the folder of a new result, and store its files."""
        examined = self._folders.make(
            result, [(each.path, each.digest) for each in files], new=True
        )
        self._blobs.store(each.digest for each in files)
        return examined

    def _remove_upload(self, session: "Session", submission: str, *, new: bool) -> None:
        """End an upload that became a result; until now it referenced the files."""
        session.flush()
        is_upload = Submission.id == submission
        locked = session.scalar(select(Submission.id).where(is_upload).with_for_update())
        if new and locked is None:
            raise _no_upload(submission)
        session.execute(delete(Submission).where(is_upload))

    def _check_lengths(self, account: Account, files: Sequence[UploadFile]) -> None:
        """Refuse wrong file lengths: rows, lists and downloads rely on them.

        Files of others are not reported, not even their existence.
        """
        visible = blob_refs.visible(self._sessions, account, (each.digest for each in files))
        for each in files:
            length = self._blobs.length(each.digest) if each.digest in visible else None
            if length not in (None, each.bytes):
                raise UsageError(
                    "The file has another length than announced",
                    where=each.path,
                    got=f"{each.bytes} bytes",
                    allowed=f"{length} bytes, which are those with the digest {each.digest}",
                    action="offer it with its own length; end an upload with another length: "
                    "DELETE /api/v1/submissions/ID",
                )

    def delete(self, result: str, account: str) -> None:
        """Delete a result for good: its row, its folder, and files that no other result needs."""
        with self._sessions.begin() as session:
            record = session.get(ResultRecord, result)
            if record is None:
                return
            digests = {each.digest for each in record.files}
            log_action(session, account, "delete", result)
            device = record.device_id
            session.delete(record)
            publishing.update_device(session, device)
            remove_unused(session, device)
        # The deletion of the row is durable before the first file is removed.
        self._blobs.remove_folder(result)
        blob_refs.remove_unreferenced(self._sessions, self._blobs, digests)


def _existing_result(session: "Session", files: Sequence[UploadFile]) -> ResultRecord | None:
    """Return the result of these files."""
    name = result_id(files)
    record = session.get(ResultRecord, name)
    if record is not None and {(each.path, each.digest) for each in record.files} != {
        (each.path, each.digest) for each in files
    }:
        raise ResultsError(
            "Another result has this id",
            where=name,
            got="other files",
            allowed="the files of the result that has it",
            action="measure again; the id is derived from the files",
        )
    return record


def _row(
    session: "Session",
    account: Account,
    result: str,
    files: Sequence[UploadFile],
    examined: ExaminedFolder,
) -> ResultRecord:
    """Add and return the row of a result."""
    device = device_of(session, examined.device)
    record = ResultRecord(
        id=result,
        account_id=account.id,
        device=device,
        submitted_utc=utc_now(),
        bytes=sum(each.bytes for each in files),
        words=words_of(device.model, examined.row.firmware, result),
        files=[FileRecord(**asdict(each)) for each in files],
        **asdict(examined.row),
    )
    session.add(record)
    log_action(session, account.name, "submit", result)
    return record


def _no_upload(submission: str) -> AbsentError:
    return AbsentError(
        "There is no such upload",
        where=submission,
        action="begin one; the commit turns an upload into a result",
    )

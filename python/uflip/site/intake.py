"""Uploads: begun with a list of files, filled, examined, committed as a result.

```text
begin ─▶ which files are missing ─▶ parts of them, in any number of sessions ─▶ commit
                                                         │ examiner: does it hold? │
                          folder under its name (rename) ◀──────────────┘
                  row of a result in place of the upload's (one transaction) ─▶ acknowledged
```

A kill between two of these steps leaves a folder without a row, or parts of an upload: `cleanup`
removes the first when a server starts, and the client resumes the second. `folders` makes the
folder.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from uflip.errors import ResultsError, UsageError
from uflip.results.initial_manifest import utc_now
from uflip.site import blob_refs, publishing
from uflip.site.accounts import may, note
from uflip.site.blobs import Blobs
from uflip.site.devices import device_of, forget
from uflip.site.folders import ResultFolders
from uflip.site.parts import FilePart
from uflip.site.result_summary import ExaminedFolder
from uflip.site.tables import (
    AbsentError,
    Account,
    FileRecord,
    ResultRecord,
    Submission,
    UploadedFile,
    words_of,
)
from uflip.site.upload_manifest import FORMER_ID, UploadFile, check_names, result_id

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

MOST_OPEN = 20
"""Uploads of one account that have begun and are not committed."""
MOST_MEETINGS = 5
"""Attempts to commit while other servers insert the same rows, as that of the device."""


@dataclass(frozen=True)
class Taken:
    """The result of a committed upload.

    Attributes
    ----------
    result : str
        Its id.
    new : bool
        Whether the site did not have this content before.
    own : bool
        Whether it belongs to the sender; else another account submitted the same content first.
    published : bool
        Whether everybody sees it.
    """

    result: str
    new: bool
    own: bool
    published: bool


class Intake:
    """Accepts uploads and stores results.

    Parameters
    ----------
    sessions : sessionmaker
        Of the database.
    blobs : Blobs
        The files.
    folders : ResultFolders
        The result folders made of these files.
    """

    def __init__(
        self, sessions: "sessionmaker[Session]", blobs: Blobs, folders: ResultFolders
    ) -> None:
        self._sessions = sessions
        self._blobs = blobs
        self._folders = folders

    def begin(self, account: Account, files: Sequence[UploadFile]) -> str:
        """Begin an upload, or find the one that began with the same files; return its id.

        Raises
        ------
        UsageError
            If these are not the files of a result, or one of them is here with another length; if
            the account has too many open uploads.
        """
        check_names(files)
        self._check_lengths(account, files)
        with self._sessions.begin() as session:
            blob_refs.lock(session)
            mine = list(
                session.scalars(select(Submission).where(Submission.account_id == account.id))
            )
            offered: list[UploadedFile] = [
                {"path": each.path, "digest": each.digest, "bytes": each.bytes}
                for each in sorted(files, key=lambda each: each.path)
            ]
            for each in mine:
                if each.files == offered:
                    return each.id
            if len(mine) >= MOST_OPEN:
                raise UsageError(
                    "There are too many uploads that are not finished",
                    got=str(len(mine)),
                    allowed=str(MOST_OPEN),
                    action="finish one, or end it: DELETE /api/v1/submissions/ID",
                )
            begun = Submission(
                id=secrets.token_hex(16), account_id=account.id, begun_utc=utc_now(), files=offered
            )
            session.add(begun)
            return begun.id

    def offered(self, account: Account, submission: str) -> list[UploadFile]:
        """Return the files of an upload.

        Raises
        ------
        ResultsError
            If this account has begun no such upload.
        """
        with self._sessions() as session:
            found = session.get(Submission, submission)
            if found is None or found.account_id != account.id:
                raise _no_upload(submission)
            return [UploadFile(**each) for each in found.files]

    def received(self, account: Account, submission: str) -> dict[str, int]:
        """Return the number of bytes of each file that need not be sent, by its digest.

        These are all bytes of a file in a result that the account may see, or the bytes it sent.
        """
        offered = self.offered(account, submission)
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
        strange = next((part.digest for part in parts if part.digest not in sizes), None)
        if strange is not None:
            raise UsageError(
                "This upload has no such file",
                where=strange,
                action="add it to the list of files of the upload first",
            )
        return self._blobs.receive(submission, [(part, sizes[part.digest]) for part in parts])

    def abandon(self, account: Account, submission: str) -> None:
        """End an upload, and remove the received bytes."""
        offered = self.offered(account, submission)
        with self._sessions.begin() as session:
            session.execute(delete(Submission).where(Submission.id == submission))
        self._blobs.forget(submission)
        blob_refs.remove_unclaimed(self._sessions, self._blobs, (each.digest for each in offered))

    def commit(self, account: Account, submission: str, *, publish: bool) -> Taken:
        """Examine an upload and store it as a result; everything is computed again from the traces.

        Parameters
        ----------
        account, submission
            Owner and id of the upload.
        publish : bool
            Publish it at once, if the account owns the result or is an admin.

        Returns
        -------
        Taken
            The stored result; the same content twice is one result.

        Raises
        ------
        UsageError
            If a file is not there yet, or has another length than announced.
        ResultsError
            If the examination fails; the upload stays, to be inspected or ended.
        """
        files = self.offered(account, submission)
        self._check_lengths(account, files)  # also of files that arrived after the upload began
        received, there = self.received(account, submission), self._blobs.there
        missing = [
            each.path
            for each in files
            if received[each.digest] != each.bytes or not there(each.digest)
        ]
        if missing:
            raise UsageError(
                "A file is not there yet",
                where=missing[0],
                got=f"{len(missing)} of {len(files)} are missing",
                action="send the missing files, then commit",
            )
        result, found = result_id(files), None
        for left in reversed(range(MOST_MEETINGS)):
            if found is None and not self._is_kept(files):
                found = self._examined(result, files)
            try:
                with self._sessions.begin() as session:
                    kept = _same(session, files)
                    if new := kept is None:
                        if found is None:
                            continue  # it was deleted just now
                        kept = _row(session, account, result, files, found)
                    self._end(session, submission, new=new)
                    own = kept.account_id == account.id
                    if publish and (own or may(account, "admin")):
                        publishing.publish(session, account, kept)
                    taken = Taken(kept.id, new, own, kept.published_utc is not None)
            except IntegrityError:
                # Another server, or another connection, was first with the result or its device.
                if not left:
                    raise
            else:
                self._blobs.forget(submission)
                return taken
        raise AssertionError("the last try ends in a result or an error")

    def _is_kept(self, files: Sequence[UploadFile]) -> bool:
        with self._sessions() as session:
            return _same(session, files) is not None

    def _examined(self, result: str, files: Sequence[UploadFile]) -> ExaminedFolder:
        """Make and examine the folder of a new result, and store its files."""
        found = self._folders.make(result, [(each.path, each.digest) for each in files], new=True)
        self._blobs.store(each.digest for each in files)
        return found

    def _end(self, session: "Session", submission: str, *, new: bool) -> None:
        """End an upload that became a result; until now it referenced the files."""
        session.flush()
        mine = Submission.id == submission
        there = session.scalar(select(Submission.id).where(mine).with_for_update())
        if new and there is None:
            raise _no_upload(submission)
        session.execute(delete(Submission).where(mine))

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

    def delete(self, result: str, who: str) -> None:
        """Delete a result for good: its row, its folder, and files that no other result needs."""
        with self._sessions.begin() as session:
            found = session.get(ResultRecord, result)
            if found is None:
                return
            digests = {each.digest for each in found.files}
            note(session, who, "delete", result)
            device = found.device_id
            session.delete(found)
            publishing.count_again(session, device)
            forget(session, device)
        # The deletion of the row is durable before the first file is removed.
        self._blobs.remove_folder(result)
        blob_refs.remove_unclaimed(self._sessions, self._blobs, digests)


def _same(session: "Session", files: Sequence[UploadFile]) -> ResultRecord | None:
    """Return the result of these files, also under the shorter id of older versions.

    Raises
    ------
    ResultsError
        If the id belongs to other files.
    """
    name = result_id(files)
    offered = {(each.path, each.digest) for each in files}
    for known in (name, name[:FORMER_ID]):
        kept = session.get(ResultRecord, known)
        if kept is not None and {(each.path, each.digest) for each in kept.files} == offered:
            return kept
        if kept is not None and known == name:
            raise ResultsError(
                "Another result has this id",
                where=name,
                got="other files",
                allowed="the files of the result that has it",
                action="measure again; ids follow from the files",
            )
    return None


def _row(
    session: "Session",
    account: Account,
    result: str,
    files: Sequence[UploadFile],
    found: ExaminedFolder,
) -> ResultRecord:
    """Add and return the row of a result."""
    device = device_of(session, found.device)
    made = ResultRecord(
        id=result,
        account_id=account.id,
        device=device,
        submitted_utc=utc_now(),
        bytes=sum(each.bytes for each in files),
        words=words_of(device.model, found.row.firmware, result),
        files=[FileRecord(path=e.path, digest=e.digest, bytes=e.bytes) for e in files],
        **found.row.model_dump(),
    )
    session.add(made)
    note(session, account.name, "submit", result)
    return made


def _no_upload(submission: str) -> AbsentError:
    return AbsentError(
        "There is no such upload",
        where=submission,
        action="begin one; a committed upload is a result, and no upload any more",
    )

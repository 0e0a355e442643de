"""Who needs a file: results that have it, and uploads that list it. Nobody else keeps it.

```text
begin     lock · the upload is written down · unlock      what is there from now on stays
commit    the result is written down, and its upload is none any more, in one transaction
delete    the result is gone · lock · files that nobody needs are removed · unlock
```

The lock is the database's, so that it holds for all servers of a site. What is removed under it is
gone before an upload that begins is told what is there.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import select, update

from uflip.site.blobs import Blobs
from uflip.site.query import seen_by
from uflip.site.tables import Account, FileRecord, Identity, ResultRecord, Submission

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker


T = TypeVar("T")
AT_A_TIME = 500
"""Files that the database is asked for at a time: a query takes a limited number of parameters."""


def lock(session: "Session") -> None:
    """Let nobody else begin an upload or remove files until this transaction ends."""
    # Whoever writes to the one row of this table waits for whoever did, in any kind of database.
    session.execute(update(Identity).values(id=Identity.id))


def remove_unclaimed(
    sessions: "sessionmaker[Session]", blobs: Blobs, digests: Iterable[str]
) -> int:
    """Remove those of some files that nobody needs any more; returns how many."""
    some = set(digests)
    with sessions.begin() as session:
        lock(session)
        # From the bucket as well before the lock is let go: an upload that begins behind it may be
        # of the same content, and would find there what is about to be deleted.
        gone = some - _claimed(session, some)
        blobs.remove(gone)
    return len(gone)


def unclaimed(sessions: "sessionmaker[Session]", digests: Iterable[str]) -> set[str]:
    """Return those of some files that nobody needs now; somebody may begin to at any time."""
    some = set(digests)
    with sessions() as session:
        return some - _claimed(session, some)


def _claimed(session: "Session", digests: set[str]) -> set[str]:
    # Uploads first: one that is committed between the two questions is a result in the second.
    claimed: set[str] = set()
    for files in session.scalars(select(Submission.files)):
        claimed.update(each["digest"] for each in files if each["digest"] in digests)
    claimed.update(session.scalars(select(FileRecord.digest).where(FileRecord.digest.in_(digests))))
    return claimed


def visible(sessions: "sessionmaker[Session]", who: Account, digests: Iterable[str]) -> set[str]:
    """Return those of some files that somebody may fetch: of a result that they may see.

    Only these need not be sent. A digest alone is no permission: everybody may have noted it while
    a result was published that is withdrawn by now.
    """
    found: set[str] = set()
    with sessions() as session:
        for some in batched(digests):
            query = (
                select(FileRecord.digest)
                .join(ResultRecord)
                .where(FileRecord.digest.in_(some), seen_by(who))
            )
            found.update(session.scalars(query))
    return found


def batched(each: Iterable[T]) -> Iterator[list[T]]:
    """Divide what there is into lists of as much as the database is asked for at a time."""
    left = iter(each)
    while some := [*islice(left, AT_A_TIME)]:
        yield some

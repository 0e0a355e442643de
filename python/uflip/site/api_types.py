"""Types of requests and responses of the API, as OpenAPI describes them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from uflip.site.rows import ResultRow
from uflip.site.upload_files import MAX_FILES, MAX_PART_BYTES


class FileOffered(BaseModel):
    """A file of a result folder."""

    path: Annotated[str, Field(max_length=260)]
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0, le=1 << 40)]


class Offer(BaseModel):
    """All files of a result folder."""

    files: Annotated[list[FileOffered], Field(max_length=MAX_FILES)]


class UploadStatus(BaseModel):
    """An upload: the number of received bytes of each file, by its digest."""

    id: str
    received: dict[str, int]
    part_bytes: int = MAX_PART_BYTES


class ReceivedBytes(BaseModel):
    """The number of received bytes of a file."""

    received: int


class ReceivedParts(BaseModel):
    """The numbers of received bytes of files, by their digests."""

    received: dict[str, int]


class Committed(BaseModel):
    """A result, as it can be cited.

    `new` is false if the site had this content, `own` if another account submitted it first;
    `published` is whether it is public now, whatever the request was.
    """

    id: str
    url: str
    new: bool
    own: bool
    published: bool


class ResultPage(BaseModel):
    """A page of results; `before` and `after` lead to the pages beside it.

    `total` counts the matches; it is a lower bound if `counted` is false.
    """

    total: int
    counted: bool
    before: str | None
    after: str | None
    results: list[ResultRow]


class ResultFile(BaseModel):
    """A file of a result: its name in the folder, and its digest and length."""

    model_config = ConfigDict(from_attributes=True)

    path: str
    digest: str
    bytes: int


class OneResult(ResultRow):
    """A result, its permanent address, and its files."""

    url: str
    files: list[ResultFile]


class OneDevice(BaseModel):
    """A device and its newest results."""

    slug: str
    model: str
    kind: str
    capacity_bytes: int
    results: list[ResultRow]

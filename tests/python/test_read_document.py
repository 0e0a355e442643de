"""Foreign files: the parts that are read, and the refusal of others."""

import os
import socket
from pathlib import Path

import pytest

from uflip.data.document import DocumentKind, decode_text, read_document, read_if_exists, read_text
from uflip.errors import ResultsError, UsageError

KIND = DocumentKind("plan", 100, "give another file", UsageError)


def refusal(path: Path, kind: DocumentKind = KIND) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_document(path, kind)
    error = caught.value
    assert error.what == "The plan cannot be read"
    assert error.where == str(path)
    assert error.got
    assert error.action == "give another file"
    return error


def test_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"x" * 100)
    assert read_document(tmp_path / "plan", KIND) == b"x" * 100


def test_file_above_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"x" * 101)
    assert refusal(tmp_path / "plan").got == "more than 100 B"


def test_link_is_followed_and_link_loop_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"x")
    (tmp_path / "link").symlink_to("plan")
    assert read_document(tmp_path / "link", KIND) == b"x"
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop").got == "a link that leads to itself"


def test_missing_file_is_none_or_an_error(tmp_path: Path) -> None:
    assert read_if_exists(tmp_path / "plan", KIND) is None
    assert refusal(tmp_path / "plan").got == "no such file"


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan")
    assert refusal(tmp_path / "plan").got == "a pipe"


def test_non_regular_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).got == "a folder"
    assert refusal(Path("/dev/zero")).got == "a character device"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert refusal(tmp_path / "socket").got == "a socket"


def test_file_of_reported_size_zero_is_not_read() -> None:
    assert Path("/proc/self/maps").stat().st_size == 0
    assert Path("/proc/self/maps").read_bytes()
    assert read_document(Path("/proc/self/maps"), KIND) == b""


def test_impossible_file_names_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / ("x" * 300)).got == "File name too long"
    assert "null" in refusal(tmp_path / "a\0b").got


def test_invalid_utf8_is_reported_with_position(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"seed\xff")
    with pytest.raises(UsageError) as caught:
        read_text(tmp_path / "plan", KIND)
    assert caught.value.got == "byte 0xff at 4, which is not UTF-8"


def test_error_class_follows_document_kind() -> None:
    with pytest.raises(ResultsError):
        decode_text(Path("x"), DocumentKind("manifest", 1, "restore it"), b"\x80")

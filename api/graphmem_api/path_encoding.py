"""Percent-encoded ids in paths: an id may hold any character, a slash included."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from starlette.convertors import Convertor
from starlette.types import Scope

from graphmem.runtime.errors import InvalidInput

SEGMENT_CONVERTOR = "segment"
"""Name of the convertor for ids in route paths, as in `/v1/users/{user_id:segment}`."""


class EncodedSegmentConvertor(Convertor[str]):
    """A path segment that is decoded after routing."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Return the decoded segment; raise InvalidInput when it is not UTF-8."""
        try:
            return unquote_to_bytes(value.encode("latin-1")).decode("utf-8")
        except UnicodeError as error:
            raise InvalidInput(
                "The path is not percent-encoded UTF-8.", errors=[{"loc": ["path"], "msg": "is not UTF-8"}]
            ) from error

    def to_string(self, value: str) -> str:
        """Return a text percent-encoded as one segment."""
        return quote(value, safe="")


def keep_path_encoded(scope: Scope) -> None:
    """Replace the decoded path of a request by the one that was sent, so that routing splits it correctly."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    scope["path"] = raw.split(b"?", 1)[0].decode("latin-1")

"""Paths as they were sent: an id may hold any character, a percent-encoded slash included."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Scope

from graphmem.errors import InvalidInput

SEGMENT_CONVERTOR = "segment"
"""Name of the convertor for ids in route paths: `/v1/users/{user_id:segment}`."""


class EncodedSegmentConvertor(Convertor[str]):
    """One segment of an undecoded path, decoded only after the path was taken apart."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Return the text of a segment; raise InvalidInput when it is not UTF-8."""
        try:
            return unquote_to_bytes(value.encode("latin-1")).decode("utf-8")
        except UnicodeError as error:
            raise InvalidInput(
                "The path is not percent-encoded UTF-8.", errors=[{"loc": ["path"], "msg": "is not UTF-8"}]
            ) from error

    def to_string(self, value: str) -> str:
        """Return a text as a segment."""
        return quote(value, safe="")


register_url_convertor(SEGMENT_CONVERTOR, EncodedSegmentConvertor())


def keep_path_encoded(scope: Scope) -> None:
    """Let routing see the path as it was sent; the convertor decodes its ids."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    scope["path"] = raw.split(b"?", 1)[0].decode("latin-1")

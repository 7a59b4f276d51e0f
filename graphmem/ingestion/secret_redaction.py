"""Redaction of secrets in text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Set

from graphmem.domain.secrets import SecretClass, find_secrets, replace_findings

Redactor = Callable[[str], str]
"""Return a text without its secrets."""


def make_redactor(allowed: Set[SecretClass]) -> Redactor:
    """Return a function that replaces each secret whose class is not allowed by the class, such as `[card]`."""

    def redact(text: str) -> str:
        return replace_findings(text, (finding for finding in find_secrets(text) if finding.cls not in allowed))

    return redact

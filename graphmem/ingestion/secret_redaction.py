"""Text without the secrets a tenant may not keep. Pure."""

from __future__ import annotations

from collections.abc import Callable, Set

from graphmem.domain.secrets import SecretClass, find_secrets, replace_findings

Redactor = Callable[[str], str]


def make_redactor(allowed: Set[SecretClass]) -> Redactor:
    """Return a function that puts the class in brackets, for example `[card]`, in the place of every other secret."""

    def redact(text: str) -> str:
        return replace_findings(text, (finding for finding in find_secrets(text) if finding.cls not in allowed))

    return redact

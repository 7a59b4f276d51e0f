"""Secrets on their way to a model: redaction in texts, and the rule that prompts state. Pure."""

from __future__ import annotations

from collections.abc import Callable, Set

from graphmem.secrets.detection import SECRET_CLASSES, SecretClass
from graphmem.secrets.scanner import find_secrets, replace_findings

Redactor = Callable[[str], str]
"""Return a text without its secrets."""

_NAMES: dict[SecretClass, str] = {
    "card": "card numbers",
    "iban": "IBANs",
    "ssn": "social security and other identity numbers",
    "api_key": "keys and tokens",
    "password": "passwords and codes",
    "birth_date": "dates of birth",
    "account_number": "account numbers",
    "email": "e-mail addresses",
    "phone": "telephone numbers",
    "street_address": "street addresses",
}
"""What prompts call the classes of secrets."""


def make_redactor(allowed: Set[SecretClass]) -> Redactor:
    """Return a function that replaces each secret whose class is not allowed by the class, such as `[card]`."""

    def redact(text: str) -> str:
        return replace_findings(text, (finding for finding in find_secrets(text) if finding.cls not in allowed))

    return redact


def render_secret_rule(allowed: Set[SecretClass]) -> str:
    """Return what prompts say of secrets: which classes they are, and which of them may be kept here."""
    refused = [_NAMES[cls] for cls in SECRET_CLASSES if cls not in allowed]
    kept = [_NAMES[cls] for cls in SECRET_CLASSES if cls in allowed]
    rule = f"secrets: {', '.join(refused)}" if refused else "secrets, of which there are none here"
    return f"{rule} (but {', '.join(kept)} are allowed here, and kept like anything else)" if kept else rule

"""Find secrets in texts and JSON values, and redact them."""

from graphmem.domain.secrets.models import SECRET_CLASSES, SecretClass, SecretFinding
from graphmem.domain.secrets.scanner import find_secrets, redact, replace_findings
from graphmem.domain.secrets.values import scan_value

__all__ = [
    "SECRET_CLASSES",
    "SecretClass",
    "SecretFinding",
    "find_secrets",
    "redact",
    "replace_findings",
    "scan_value",
]

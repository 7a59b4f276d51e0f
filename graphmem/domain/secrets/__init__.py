"""Find secrets in texts and JSON values, and redact them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from graphmem.domain.secrets.addresses import find_addresses
from graphmem.domain.secrets.api_keys import find_api_keys
from graphmem.domain.secrets.birth_dates import find_birth_dates
from graphmem.domain.secrets.contacts import find_emails, find_phones
from graphmem.domain.secrets.id_numbers import find_accounts, find_cards, find_ibans, find_ssns
from graphmem.domain.secrets.models import SECRET_CLASSES, SecretClass, SecretFinding, Span
from graphmem.domain.secrets.passwords import find_passwords
from graphmem.text.folding import fold

__all__ = [
    "JSON",
    "SECRET_CLASSES",
    "SecretClass",
    "SecretFinding",
    "find_secrets",
    "redact",
    "replace_findings",
    "scan_value",
]

JSON = dict[str, "JSON"] | list["JSON"] | str | int | float | bool | None

_HAS_DIGIT = re.compile(r"\d")


def find_secrets(text: str, *, region: str | None = None) -> list[SecretFinding]:
    """Return the secrets in `text` in reading order; telephone numbers without a country code may be from `region`.

    Offsets are those of `text`, although width forms, foreign digits and invisible characters are folded first. A
    finding within the characters of another has the class that comes first in `SECRET_CLASSES`.
    """
    folded = fold(text)
    taken: list[tuple[SecretClass, Span]] = []
    for cls, start, end in _run_detectors(folded.text, region):
        if not any(start >= other_start and end <= other_end for _, (other_start, other_end) in taken):
            taken.append((cls, (start, end)))
    findings = [SecretFinding(cls, *folded.original_span(start, end)) for cls, (start, end) in taken]
    return sorted(findings, key=lambda finding: (finding.start, finding.end))


def _run_detectors(text: str, region: str | None) -> Iterator[tuple[SecretClass, int, int]]:
    digits = _HAS_DIGIT.search(text) is not None
    detectors: list[tuple[SecretClass, bool, Callable[[str], Iterable[Span]]]] = [
        ("card", digits, find_cards),
        ("iban", digits, find_ibans),
        ("ssn", digits, find_ssns),
        ("api_key", True, find_api_keys),
        ("password", True, find_passwords),
        ("birth_date", digits or "月" in text, find_birth_dates),
        ("account_number", digits, find_accounts),
        ("email", True, find_emails),
        ("phone", digits, partial(find_phones, region=region)),
        ("street_address", digits, find_addresses),
    ]
    for cls, is_applicable, detector in detectors:
        if is_applicable:
            for start, end in detector(text):
                yield cls, start, end


def redact(text: str, *, region: str | None = None) -> str:
    """Return `text` with each secret replaced by its class, such as `[card]`, until none is found."""
    while findings := find_secrets(text, region=region):
        text = replace_findings(text, findings)
    return text


def replace_findings(text: str, findings: Iterable[SecretFinding]) -> str:
    """Return `text` with findings, which are in reading order, replaced by their classes; overlapping ones by one."""
    parts, position = [], 0
    for finding in findings:
        if finding.end <= position:
            continue
        if finding.start >= position:
            parts += [text[position : finding.start], f"[{finding.cls}]"]
        position = finding.end
    return "".join(parts) + text[position:]


def scan_value(value: JSON, *, region: str | None = None) -> set[SecretClass]:
    """Return the classes of secrets in the keys and values of a JSON value; a key is read as the label of its value."""
    found: set[SecretClass] = set()
    pending: list[tuple[str, JSON]] = [("", value)]
    while pending:
        key, item = pending.pop()
        if isinstance(item, dict):
            found.update(finding.cls for name in item for finding in find_secrets(str(name), region=region))
            pending += [(str(name), part) for name, part in item.items()]
        elif isinstance(item, list | tuple | set):
            pending += [(key, part) for part in item]
        elif (text := _scalar_to_text(item)) is not None:
            for candidate in (text, f"{_split_key_words(key)}: {text}") if key else (text,):
                found.update(finding.cls for finding in find_secrets(candidate, region=region))
    return found


def _scalar_to_text(item: JSON) -> str | None:
    if isinstance(item, str):
        return item
    if isinstance(item, bool) or not isinstance(item, int | float):
        return None
    return str(int(item)) if isinstance(item, int) or item.is_integer() else None


def _split_key_words(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-.]+", " ", key)

"""Secrets in texts of any length and in JSON values: found, redacted, or kept if a tenant may store them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import accumulate, groupby

from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.field_types import JSON
from graphmem.secrets.credentials import find_api_keys, find_passwords, find_private_keys
from graphmem.secrets.detection import (
    SECRET_CLASSES,
    SecretClass,
    SecretFinding,
    Span,
    assemble_pieces,
    fold_spelled_digits,
    join_digit_groups,
    undisguise,
)
from graphmem.secrets.numbers import find_accounts, find_cards, find_ibans, find_ssns
from graphmem.secrets.personal_details import find_addresses, find_birth_dates, find_emails, find_phones
from graphmem.text.normalising import fold

WINDOW = 8_192
"""Characters of a long text that are read at a time.

A detector costs at most this much more than a linear one, and a scanning thread lets others run after each window.
"""

_BEFORE, _AFTER = 600, 1_600
"""Characters before and after a window that are still read for labels and for the ends of secrets."""

_REST_OF_TOKEN = re.compile(r"\S{0,20000}")
_WIDE_SPACE = re.compile(r"[ \t]{2,}|\t")
_HAS_DIGIT = re.compile(r"\d")
_HEXADECIMAL_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?=\d*+[a-f])[0-9a-f]{24,128})(?![0-9A-Za-z])",
    re.IGNORECASE,
)
"""UUIDs, hashes and object ids, whose digits may look like a card number."""

_GIVEN_IN_PIECES: frozenset[SecretClass] = frozenset(["card", "iban", "ssn", "password", "account_number", "phone"])
"""Classes found by assembling pieces; the other classes have a format that pieces lack."""

_MASK = "\x1f"

_Found = Mapping[SecretClass, list[Span]]


def find_secrets(text: str, *, region: str | None = None) -> list[SecretFinding]:
    """Return the secrets in `text` in reading order; telephone numbers without a country code may be from `region`.

    Offsets refer to `text`, although width forms, foreign digits, invisible characters, digit words and thin disguises
    are folded first. A finding within another has the class that comes first in `SECRET_CLASSES`.
    """
    found: dict[SecretClass, list[Span]] = {cls: [] for cls in SECRET_CLASSES}
    found["api_key"] += find_private_keys(text)
    for start in range(0, len(text), WINDOW):
        _scan_window(text, start, min(start + WINDOW, len(text)), region, found)
    return sorted(_drop_contained(found), key=lambda finding: (finding.start, finding.end))


def _scan_window(text: str, start: int, end: int, region: str | None, found: _Found) -> None:
    """Add the secrets that begin in a window of a text."""
    first, last = max(0, start - _BEFORE), min(len(text), end + _AFTER)
    folded = fold_spelled_digits(undisguise(fold(text[first:last])).replace(_WIDE_SPACE, lambda _: " "))
    spans = [(cls, folded.original_span(*span)) for cls, span in _run_detectors(folded.text, region)]
    if joined := join_digit_groups(replace(folded, text=_mask_ids(folded.text))):
        spans += [(cls, joined.original_span(*span)) for cls, span in _run_checked_detectors(joined.text)]
    for whole, span in assemble_pieces(folded.text):
        found_in_whole = {cls for cls, _ in _run_detectors(whole, region)} & _GIVEN_IN_PIECES
        spans += [(cls, folded.original_span(*span)) for cls in found_in_whole]
    for cls, span in spans:
        at, until = first + span[0], first + span[1]
        if not start <= at < end:
            continue
        if until == last < len(text) and (rest := _REST_OF_TOKEN.match(text, until)):
            until = rest.end()
        found[cls].append((at, until))


def _run_detectors(text: str, region: str | None) -> Iterator[tuple[SecretClass, Span]]:
    has_digit = _HAS_DIGIT.search(text) is not None
    numbers = _mask_ids(text) if has_digit else text
    ibans = list(find_ibans(numbers)) if has_digit else []
    detectors: list[tuple[SecretClass, bool, str, Callable[[str], Iterable[Span]]]] = [
        ("iban", bool(ibans), numbers, lambda _: ibans),
        ("card", has_digit, _mask(numbers, ibans), find_cards),
        ("ssn", has_digit, numbers, find_ssns),
        ("api_key", True, text, find_api_keys),
        ("password", True, text, find_passwords),
        ("birth_date", has_digit or "月" in text, text, find_birth_dates),
        ("account_number", has_digit, numbers, find_accounts),
        ("email", True, text, find_emails),
        ("phone", has_digit, numbers, partial(find_phones, region=region)),
        ("street_address", has_digit, text, find_addresses),
    ]
    for cls, is_applicable, read, detector in detectors:
        if is_applicable:
            for span in detector(read):
                yield cls, span


def _run_checked_detectors(text: str) -> Iterator[tuple[SecretClass, Span]]:
    """Yield the numbers proved by check digits, whatever stands between their groups."""
    ibans = list(find_ibans(text))
    yield from (("iban", span) for span in ibans)
    yield from (("card", span) for span in find_cards(_mask(text, ibans)))


def _mask_ids(text: str) -> str:
    """Return a text of the same length without UUIDs, hashes and object ids."""
    return _HEXADECIMAL_ID.sub(lambda match: _MASK * len(match.group()), text)


def _mask(text: str, spans: Iterable[Span]) -> str:
    """Return a text of the same length without the characters of the spans."""
    for start, end in spans:
        text = f"{text[:start]}{_MASK * (end - start)}{text[end:]}"
    return text


def _drop_contained(found: _Found) -> Iterator[SecretFinding]:
    """Yield the findings that are not within one of an earlier class, or a longer one of the same class."""
    taken: list[Span] = []
    for cls in SECRET_CLASSES:
        starts = [start for start, _ in taken]
        ends = list(accumulate((end for _, end in taken), max))
        reach = 0
        for start, end in sorted(found[cls], key=lambda span: (span[0], -span[1])):
            before = bisect_right(starts, start)
            if end <= reach or (before and end <= ends[before - 1]):
                continue
            reach = end
            taken.append((start, end))
            yield SecretFinding(cls, start, end)
        taken.sort()


def redact(text: str, *, region: str | None = None) -> str:
    """Return `text` with each secret replaced by its class, such as `[card]`, until none is found."""
    while findings := find_secrets(text, region=region):
        text = replace_findings(text, findings)
    return text


def replace_findings(text: str, findings: Iterable[SecretFinding]) -> str:
    """Return `text` with findings, given in reading order, replaced by their classes; overlapping ones by one."""
    parts: list[str] = []
    position = 0
    for finding in findings:
        if finding.end <= position:
            continue
        if finding.start >= position:
            parts += [text[position : finding.start], f"[{finding.cls}]"]
        position = finding.end
    return "".join(parts) + text[position:]


_BARRIER = f"\n{8 * chr(0x1F)}\n"
"""Separates texts that are scanned together: wider than any gap that a detector reads across."""

_SHORTEST = 5
"""Minimum characters of a secret without a label."""

_SHORTEST_LABELLED = 3
"""Minimum characters of a value for its key to matter."""

_LONGEST_LABELLED = 500
"""Maximum characters of a value for its key to matter: a longer value is a text with labels of its own."""

_LONGEST_LABEL = 60
"""Maximum characters of a key that are read as a label."""

_MOST_LABELS = 200_000
"""Maximum characters of labels in one value; further values are read without their keys."""

_PART_OF_NUMBER = re.compile(r"[A-Z0-9]{0,4}\d[A-Z0-9]{0,4}")
"""A possible part of a split number: the items of `[4111, 1111, 1111, 1111]`."""

_WORD_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-.]+")


def scan_value(value: JSON, *, region: str | None = None) -> set[SecretClass]:
    """Return the classes of secrets in the keys and values of a JSON value; a key is read as the label of its value."""
    return {finding.cls for text in _render(value) for finding in find_secrets(text, region=region)}


def _render(value: JSON) -> tuple[str, str]:
    """Return all keys and values as one text, and as a second text with the last two keys before each short value."""
    plain: list[str] = []
    labelled = _LabelledTexts()
    pending: list[tuple[tuple[str, ...], JSON]] = [((), value)]
    while pending:
        keys, item = pending.pop()
        if isinstance(item, dict):
            plain += map(str, item)
            plain += _join_parts(item.values())
            pending += [((*keys[-1:], _to_words(str(name))), part) for name, part in item.items()]
        elif isinstance(item, (list, tuple, set, frozenset)):
            for joined in _join_parts(item):
                plain.append(joined)
                labelled.add(keys, joined.replace(",", ""))
            pending += [(keys, part) for part in item]
        elif (text := _scalar_to_text(item)) is not None:
            if len(text) >= _SHORTEST:
                plain.append(text)
            labelled.add(keys, text)
    return _BARRIER.join(plain), _BARRIER.join(labelled.texts)


class _LabelledTexts:
    """Values preceded by their keys, up to a limit on the keys, which a long list repeats."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._room = _MOST_LABELS

    def add(self, keys: Sequence[str], text: str) -> None:
        if keys and self._room > 0 and _SHORTEST_LABELLED <= len(text) <= _LONGEST_LABELLED:
            label = " ".join(keys)
            self.texts.append(f"{label}: {text}")
            self._room -= len(label) + len(_BARRIER)


def _to_words(key: str) -> str:
    return _WORD_BOUNDARY.sub(" ", key[-_LONGEST_LABEL:])


def _join_parts(items: Iterable[JSON]) -> Iterator[str]:
    """Yield the numbers formed by consecutive items."""
    texts = (_scalar_to_text(item) or "" for item in items)
    for is_part, group in groupby(texts, key=lambda text: _PART_OF_NUMBER.fullmatch(text) is not None):
        parts = list(group)
        if is_part and len(parts) > 1:
            yield ", ".join(parts)


def _scalar_to_text(item: JSON) -> str | None:
    if isinstance(item, str):
        return item
    if isinstance(item, bool) or not isinstance(item, int | float):
        return None
    return str(int(item)) if isinstance(item, int) or item.is_integer() else None


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
"""Names of the secret classes in prompts."""


def make_redactor(allowed: Set[SecretClass]) -> Redactor:
    """Return a function that replaces each secret whose class is not allowed with its class, such as `[card]`."""

    def redact(text: str) -> str:
        return replace_findings(text, (finding for finding in find_secrets(text) if finding.cls not in allowed))

    return redact


def render_secret_rule(allowed: Set[SecretClass]) -> str:
    """Return the prompt text about secrets: which classes there are, and which of them may be kept here."""
    refused = [_NAMES[cls] for cls in SECRET_CLASSES if cls not in allowed]
    kept = [_NAMES[cls] for cls in SECRET_CLASSES if cls in allowed]
    rule = f"secrets: {', '.join(refused)}" if refused else "secrets, of which there are none here"
    return f"{rule} (but {', '.join(kept)} are allowed here, and kept like anything else)" if kept else rule


class SecretPolicy:
    """Classes of secrets that may be stored: allowed for every tenant (`email`) or for one (`acme:email`)."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """Parse the allowed classes; raise ConfigurationError for an unknown class."""
        self._global_classes: set[SecretClass] = set()
        self._classes_by_tenant: dict[str, set[SecretClass]] = {}
        for entry in allowed:
            tenant, _, name = entry.strip().rpartition(":")
            if name not in SECRET_CLASSES:
                raise ConfigurationError(
                    f"GRAPHMEM_ALLOWED_SECRET_CLASSES contains the unknown class {name!r}; the classes are "
                    f"{', '.join(SECRET_CLASSES)}.",
                    retry_after=None,
                )
            classes = self._classes_by_tenant.setdefault(tenant, set()) if tenant else self._global_classes
            classes.add(name)

    def allowed_classes(self, tenant: str) -> frozenset[SecretClass]:
        """Return the classes the tenant may store."""
        return frozenset(self._global_classes | self._classes_by_tenant.get(tenant, set()))

    def refused_classes(self, value: JSON, tenant: str) -> list[str]:
        """Return, sorted, the classes of secrets in a text or JSON value that the tenant may not store."""
        return sorted(scan_value(value) - self.allowed_classes(tenant))

"""All detectors over a text of any length, in time that grows with its length."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import accumulate

from graphmem.secrets.addresses import find_addresses
from graphmem.secrets.api_keys import find_api_keys, find_private_keys
from graphmem.secrets.birth_dates import find_birth_dates
from graphmem.secrets.cards import find_cards
from graphmem.secrets.contacts import find_emails, find_phones
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
from graphmem.secrets.id_numbers import find_accounts, find_ibans, find_ssns
from graphmem.secrets.passwords import find_passwords
from graphmem.text.normalising import fold

WINDOW = 8_192
"""Characters of a long text that are read at a time: a detector costs at most this much more than a linear one, and a
thread that scans lets others run after each."""

_BEFORE, _AFTER = 600, 1_600
"""Characters before and after a window in which labels, and the ends of secrets, are still read."""

_REST_OF_TOKEN = re.compile(r"\S{0,20000}")
_WIDE_SPACE = re.compile(r"[ \t]{2,}|\t")
_HAS_DIGIT = re.compile(r"\d")
_HEXADECIMAL_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?=\d*+[a-f])[0-9a-f]{24,128})(?![0-9A-Za-z])",
    re.IGNORECASE,
)
"""UUIDs, hashes and object ids: some of their digits look like the number of a card."""

_GIVEN_IN_PIECES: frozenset[SecretClass] = frozenset(["card", "iban", "ssn", "password", "account_number", "phone"])
"""What is found when its pieces are put together; other classes have a form that pieces do not have."""

_MASK = "\x1f"

_Found = Mapping[SecretClass, list[Span]]


def find_secrets(text: str, *, region: str | None = None) -> list[SecretFinding]:
    """Return the secrets in `text` in reading order; telephone numbers without a country code may be from `region`.

    Offsets are those of `text`, although width forms, foreign digits, invisible characters, words of digits and thin
    disguises are folded first. A finding within the characters of another has the class that comes first in
    `SECRET_CLASSES`.
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
    """Yield the numbers that check digits prove, whatever stands between their groups."""
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
    """Return `text` with findings, which are in reading order, replaced by their classes; overlapping ones by one."""
    parts, position = [], 0
    for finding in findings:
        if finding.end <= position:
            continue
        if finding.start >= position:
            parts += [text[position : finding.start], f"[{finding.cls}]"]
        position = finding.end
    return "".join(parts) + text[position:]

"""Secrets in JSON values and on their way to a model: found, redacted, or kept where a tenant may store them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import groupby

from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.field_types import JSON
from graphmem.secrets.detection import SECRET_CLASSES, SecretClass
from graphmem.secrets.scanner import find_secrets, replace_findings

_BARRIER = f"\n{8 * chr(0x1F)}\n"
"""Stands between texts that are scanned together: wider than the gap that any detector reads across."""

_SHORTEST = 5
"""Fewest characters of a secret without a label."""

_SHORTEST_LABELLED = 3
"""Fewest characters of a value for which its key matters."""

_LONGEST_LABELLED = 500
"""Most characters of a value for which its key matters: a longer one is a text with labels of its own."""

_LONGEST_LABEL = 60
"""Characters of a key that are read as a label."""

_MOST_LABELS = 200_000
"""Characters of labels in one value; further values are read without their keys."""

_PART_OF_NUMBER = re.compile(r"[A-Z0-9]{0,4}\d[A-Z0-9]{0,4}")
"""What a number may be split into: the items of `[4111, 1111, 1111, 1111]`."""

_WORD_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-.]+")


def scan_value(value: JSON, *, region: str | None = None) -> set[SecretClass]:
    """Return the classes of secrets in the keys and values of a JSON value; a key is read as the label of its value."""
    return {finding.cls for text in _render(value) for finding in find_secrets(text, region=region)}


def _render(value: JSON) -> tuple[str, str]:
    """Return all keys and values as one text, and as another one with the last two keys before each short value."""
    plain: list[str] = []
    labelled = _LabelledTexts()
    pending: list[tuple[tuple[str, ...], JSON]] = [((), value)]
    while pending:
        keys, item = pending.pop()
        if isinstance(item, dict):
            plain += map(str, item)
            plain += _join_parts(item.values())
            pending += [((*keys[-1:], _to_words(str(name))), part) for name, part in item.items()]
        elif isinstance(item, list | tuple | set | frozenset):
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
    """Values with their keys before them, as far as the keys, which a long list repeats, are not too many."""

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
    """Yield the numbers that consecutive items make together."""
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

"""What a detector reports, and the classes there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

SecretClass = Literal[
    "card", "iban", "ssn", "api_key", "password", "birth_date", "account_number", "email", "phone", "street_address"
]
"""The classes of secrets; where two overlap on the same characters the earlier one names them."""

SECRET_CLASSES: tuple[SecretClass, ...] = get_args(SecretClass)


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """One secret in a text: its class and the half-open range of characters it covers."""

    cls: SecretClass
    start: int
    end: int


Span = tuple[int, int]
"""A half-open range of characters in folded text."""

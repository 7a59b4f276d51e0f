"""The classes of secrets, and what a detector reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

SecretClass = Literal[
    "card", "iban", "ssn", "api_key", "password", "birth_date", "account_number", "email", "phone", "street_address"
]
"""The classes of secrets; a finding of an earlier class hides those within it."""

SECRET_CLASSES: tuple[SecretClass, ...] = get_args(SecretClass)


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """One secret in a text: its class and its half-open range of characters."""

    cls: SecretClass
    start: int
    end: int


Span = tuple[int, int]
"""A half-open range of characters in folded text."""

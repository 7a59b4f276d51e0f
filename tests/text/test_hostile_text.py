"""Hostile text for every parser: an answer or a refusal, in bounded time; `make torture` tries it by the thousand."""

from __future__ import annotations

import pytest

from torture.findings import Findings
from torture.fuzz_parsers import PARSERS, fuzz_parser


@pytest.mark.parametrize("name", PARSERS)
def test_any_text_is_parsed_or_refused(name: str) -> None:
    findings = Findings()
    fuzz_parser(name, PARSERS[name], 30, findings)
    assert not findings.total, findings.report()

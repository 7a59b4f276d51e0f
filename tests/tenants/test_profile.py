"""Product profiles: which one a tenant has, and what each of them contains."""

from __future__ import annotations

import pytest

from graphmem.memories.memory import MemoryIn
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.settings import Settings
from graphmem.tenants.profiles import (
    PatternType,
    TenantProfiles,
    known_topic_tags,
    load_profile,
    profile_names,
)

TAGS = ["sailing", "CASHFLOW_AND_SPENDING", "boats", "OTHER", "sailing"]


@pytest.mark.parametrize(
    ("setting", "acme", "others"),
    [
        ("", "general", "general"),
        ("finance", "finance", "finance"),
        ("acme:finance", "finance", "general"),
        ("finance, acme:general", "general", "finance"),
    ],
)
def test_a_tenant_has_its_own_profile_or_the_one_for_everybody(
    monkeypatch: pytest.MonkeyPatch, setting: str, acme: str, others: str
) -> None:
    monkeypatch.setenv("GRAPHMEM_PROFILES", setting)
    profiles = TenantProfiles(Settings().profiles)
    assert (profiles.for_tenant("acme").name, profiles.for_tenant("default").name) == (acme, others)


@pytest.mark.parametrize("entries", [["banking"], ["acme:banking"], ["general", "finance"], ["a:general", "a:finance"]])
def test_an_unknown_or_second_profile_is_a_configuration_error(entries: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="GRAPHMEM_PROFILES names"):
        TenantProfiles(entries)


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_loads(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.topic_tags <= known_topic_tags()


def test_the_general_profile_contains_nothing_of_a_product() -> None:
    general = load_profile("general")
    product_fields = {"topic_tags", "concerns", "continuity", "technical_cues", "glossary", "amount_contexts"}
    assert not any(general.model_dump(include=product_fields).values())


@pytest.mark.req("CASH-10", "TRUE-15")
def test_the_finance_profile_has_the_topic_tags_and_the_spending_concern() -> None:
    finance = load_profile("finance")
    assert finance.topic_tags == {
        "HOUSEHOLD_AND_CONTEXT", "GOALS_AND_TIMELINES", "RISK_TOLERANCE", "CASHFLOW_AND_SPENDING",
        "COMMUNICATION_PREFERENCES", "FINANCIAL_PLANNING", "OTHER",
    }  # fmt: skip
    assert [rule.pattern_type for rule in finance.concerns] == [PatternType.SPENDING_CONCERN]


@pytest.mark.parametrize(
    ("name", "labels"), [("finance", ["CASHFLOW_AND_SPENDING", "OTHER"]), ("general", ["sailing", "boats"])]
)
def test_a_session_is_labelled_by_the_tags_of_its_profile(name: str, labels: list[str]) -> None:
    assert load_profile(name).session_tags(TAGS) == labels


@pytest.mark.req("CASH-10")
def test_topic_tags_are_recognised_without_a_profile() -> None:
    memory = MemoryIn(content="Mara checks her budget", tags=["cashflow and spending", "risk-tolerance", "Sport"])
    assert memory.tags == ["CASHFLOW_AND_SPENDING", "RISK_TOLERANCE", "sport"]

"""Entities are linked on evidence: a quote that says so, a predicate that means it, or names of one form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graphmem.consolidation.guards import refusal_reason
from graphmem.consolidation.models import (
    StatementQuote,
    ValueQuote,
    Verification,
    parse_proposals,
)
from tests.consolidation.test_guards import check, entity, fact, make_context
from tests.consolidation.verifications import identifying

QUOTED = [
    ("Katharina Boll", "Kitty", "Katharina Boll, whom friends call Kitty, lives in Prüm."),
    ("Ulrich Sand", "Uli", "Ulrich Sand wird von allen Uli genannt."),
    ("Marguerite Pons", "Margot", "Tout le monde appelle Marguerite Pons Margot."),
    ("Francisco Rey", "Paco", "A Francisco Rey lo llaman Paco."),
    ("Евгений Котов", "Женя", "Евгения Котова все зовут Женя."),
    ("山口由美", "ゆみりん", "山口由美は友達にゆみりんと呼ばれている。"),
    ("王小梅", "梅子", "王小梅的小名叫做梅子。"),
    ("Birgitta Ek", "Gittan", "Birgitta Ek kallas för Gittan av alla."),
    ("Nguyễn Thị Mai", "Bống", "Nguyễn Thị Mai ở nhà gọi là Bống."),
]

CALLS = [
    ("Bob", "Ada", "Ada called Bob yesterday evening", "CALLED"),
    ("Ada", "Bob", "Bob is called by Ada every Sunday", "CALLED_BY"),
    ("Carl", "Dora", "Carl renamed Dora in his novel", "RENAMED"),
    ("Ada", "Bob", "Ada gave Bob the name of a doctor", "NAME_OF"),
]

APART = [
    ("Anna Boll", "Anna Sand", "Anna Boll and Anna Sand share an office.", "STATES"),
    ("Anna Boll", "Anne Boll", "Anna Boll is not Anne Boll.", "STATES"),
    ("Anna Boll", "Anne Boll", "Anna Boll ist nicht mit Anne Boll zu verwechseln.", "STATES"),
    ("Ana Rey", "Eva Rey", "Ana Rey es otra persona que Eva Rey.", "STATES"),
    ("Анна Котова", "Анна Белова", "Анна Котова и Анна Белова работают вместе.", "STATES"),
    ("山口由美", "山田由美", "山口由美と山田由美は別人だ。", "STATES"),
    ("Anna Boll", "Boll", "Anna Boll paints.", "STATES"),
    ("Anna Boll", "Ann", "Anna Boll paints.", "STATES"),
    ("Mr Boll", "Mrs Boll", "Mr Boll paints.", "STATES"),
]


def refusal(
    keep: str, merge: str, content: str, predicate: str = "STATES", quote: str | None = None, **fields: Any
) -> str | None:
    one, other = entity(keep), entity(merge)
    # A save links a statement to the entities that its text names.
    named = tuple(found.id for found in (one, other) if found.name in content and quote is None)
    joined = {"object_id": other.id} if predicate != "STATES" else {}
    stated = fact("m", content, one.id, predicate=predicate, entity_ids=named or (one.id,), **joined)
    context = make_context(stated, entities=(one, other), facts_by_entity={one.id: [stated]}, curated=quote is None)
    given = {"keep_id": one.id, "merge_id": other.id, "evidence": ["m"], **fields}
    [proposal] = parse_proposals([{"action": "LINK_ENTITIES", **given}])
    return refusal_reason(proposal, context, identifying(stated, quote) if quote is not None else None)


@pytest.mark.req("UMB-14")
@pytest.mark.parametrize(("keep", "merge", "content"), QUOTED, ids=[merge for _, merge, _ in QUOTED])
def test_a_quoted_sentence_that_gives_one_thing_two_names_is_evidence(keep: str, merge: str, content: str) -> None:
    assert refusal(keep, merge, content, quote=content) is None
    assert refusal(keep, merge, content), "without a quote nothing says so"


@pytest.mark.req("UMB-16")
def test_a_quote_that_stands_nowhere_or_names_one_only_is_no_evidence() -> None:
    keep, merge, content = QUOTED[0]
    assert refusal(keep, merge, content, quote="Katharina Boll is Kitty")
    assert refusal("Hans Boll", merge, "Katharina Boll, whom friends call Kitty", quote="friends call Kitty") is None
    assert refusal("Hans Boll", "Rolf", "Katharina Boll, whom friends call Kitty", quote="friends call Kitty")


@pytest.mark.req("UMB-16")
@pytest.mark.parametrize(("keep", "merge", "content", "predicate"), CALLS, ids=[content for _, _, content, _ in CALLS])
def test_who_calls_or_renames_somebody_is_not_that_one(keep: str, merge: str, content: str, predicate: str) -> None:
    assert refusal(keep, merge, content, predicate)
    assert refusal(keep, merge, content)


@pytest.mark.req("UMB-16")
@pytest.mark.parametrize(("keep", "merge", "content", "predicate"), APART, ids=[content for _, _, content, _ in APART])
def test_namesakes_and_those_that_a_sentence_names_both_are_not_linked(
    keep: str, merge: str, content: str, predicate: str
) -> None:
    assert refusal(keep, merge, content)


def test_what_tells_two_apart_outweighs_what_says_that_they_are_one() -> None:
    one, other = entity("Frederick"), entity("Fred")
    stated = fact("m", "Frederick, whom everybody calls Fred", one.id)
    context = make_context(stated, entities=(one, other), facts_by_entity={one.id: [stated]})
    [link] = parse_proposals([{"action": "LINK_ENTITIES", "keep_id": one.id, "merge_id": other.id}])
    verification = identifying(stated, stated.content)
    assert refusal_reason(link, context, verification) is None
    apart = verification.model_copy(update={"apart": [StatementQuote(memory_id="n", words="Fred met Frederick")]})
    assert refusal_reason(link, context, apart)


@pytest.mark.req("UMB-14")
def test_a_person_may_verify_a_link_and_no_other_rule_is_skipped() -> None:
    content = "Ada met Bea in Bonn"
    assert refusal("Ada", "Bea", content, "MET")
    assert refusal("Ada", "Bea", content, "MET", verified=True) is None
    user, place = entity("user", is_user=True), entity("Bonn", "City")
    for keep, merge in ((place, user), (entity("Ada"), place)):
        context = replace(make_context(entities=(place, entity("Ada"))), curated=True)
        assert check("LINK_ENTITIES", context, keep_id=keep.id, merge_id=merge.id, verified=True)


def test_a_model_cannot_verify_its_own_proposals() -> None:
    context = make_context(entities=(entity("Ada"), entity("Bea")))
    assert check("LINK_ENTITIES", context, keep_id="ada", merge_id="bea", verified=True)


@pytest.mark.parametrize("predicate", ["ALSO_KNOWN_AS", "SAME_AS", "NICKNAME_OF", "ALIAS_OF"])
def test_a_predicate_that_means_identity_is_evidence(predicate: str) -> None:
    assert refusal("Katharina Boll", "K.", "K. is Katharina Boll.", predicate) is None


def test_relatives_of_the_user_are_not_the_user() -> None:
    user, aunt = entity("user", is_user=True, aliases=["Mara"]), entity("Ines")
    stated = fact("m", "Mara's aunt Ines is called the boss", aunt.id, entity_ids=(aunt.id, user.id))
    context = replace(
        make_context(stated, facts_by_entity={aunt.id: [stated]}), entities={user.id: user, aunt.id: aunt}
    )
    assert check("LINK_ENTITIES", context, keep_id=user.id, merge_id=aunt.id, evidence=["m"])


def test_an_alias_needs_a_quote_that_gives_it() -> None:
    bertram = entity("Bertram Hale")
    called = fact("m", "Bertram Hale is known as Tam", bertram.id)
    context = make_context(called, entities=(bertram,), facts_by_entity={bertram.id: [called]})
    [update] = parse_proposals([{"action": "UPDATE_ENTITY", "entity_id": bertram.id, "add_aliases": ["Tam"]}])

    def quoted(words: str, value: str = "Tam") -> Verification:
        return Verification(values=[ValueQuote(memory_id="m", words=words, value=value)])

    assert refusal_reason(update, context, quoted("is known as Tam")) is None
    assert refusal_reason(update, context, quoted("is called Tam")), "an invented quote"
    assert refusal_reason(update, context, quoted("Bertram Hale")), "a quote without the name"
    assert refusal_reason(update, context, Verification())
    assert refusal_reason(update, context), "nobody has verified it"


@pytest.mark.parametrize("trusted", ["user", "web"])
def test_a_less_trusted_memory_gives_no_name_to_what_a_more_trusted_one_is_about(trusted: str) -> None:
    bob, bobby = entity("bob"), entity("bobby")
    known = fact("known", "bob repairs clocks", subject="bob", source_kind=trusted)
    told = fact("told", "bob is also known as bobby", subject="bob", entity_ids=("bob", "bobby"), source_kind="web")
    context = make_context(known, told, entities=(bob, bobby), facts_by_entity={"bob": [known, told], "bobby": [told]})
    quote = ValueQuote(memory_id="told", words="also known as bobby", value="bobby")
    link = {"action": "LINK_ENTITIES", "keep_id": "bob", "merge_id": "bobby", "evidence": ["told"]}
    reasons = [refusal_reason(parse_proposals([link])[0], context, identifying(told, "bob is also known as bobby"))]
    name = {"action": "UPDATE_ENTITY", "entity_id": "bob", "set": {"nickname": "bobby"}, "evidence": ["told"]}
    reasons.append(refusal_reason(parse_proposals([name])[0], context, Verification(values=[quote])))
    [related] = parse_proposals([{"action": "ASSOCIATE", "memory_ids": ["known", "told"]}])
    reasons.append(refusal_reason(related, context))
    why = "the memories are not equally trusted: a statement from web does not change one from user"
    assert reasons == ([why] * 3 if trusted == "user" else [None] * 3)

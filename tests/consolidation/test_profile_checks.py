"""Which sentences of a profile stand in the facts that they cite, in several languages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphmem.consolidation.profiles import MAX_SENTENCES, CitableFact, ProfileCheck


def check_of(facts: list[str], names: list[str], others: list[list[str]] | None = None) -> ProfileCheck:
    shown = [CitableFact(f"m{number}", *fact.split("|")) for number, fact in enumerate(facts, 1)]
    return ProfileCheck(shown, names, others or [], lambda text: "4111" in text)


ADA = check_of(
    [
        "Ada Lind works at Lumen.|since 2024-03-05",
        "Ada Lind has two dogs, Pixel and Nori.",
        "Ada Lind paid 1,250 euros for a cello.",
        "Ada Lind is married to Tove.",
    ],
    ["Ada Lind", "Ada"],
    [["Lumen"], ["Tove", "Tove Ek"]],
)
JONAS = check_of(
    ["Jonas leitet die Buchhaltung bei Kranbau Süd.", "Jonas kommt mit dem Zug aus Ulm."],
    ["Jonas"],
    [["Kranbau Süd"], ["Ulm"]],
)
KEN = check_of(["田中健は大阪で歯科医をしている。", "田中健には娘が2人いる。"], ["田中健"], [["大阪"]])
VERA = check_of(["Вера живёт в Казани с 2015 года.", "Вера работает врачом."], ["Вера"], [["Казань"]])


SUPPORTED = [
    (ADA, "Ada Lind works at Lumen.", [1]),
    (ADA, "She has worked at Lumen since 2024.", [1]),
    (ADA, "She has worked at Lumen since 2024-03-05 and has two dogs, Pixel and Nori.", [1, 2]),
    (ADA, "Ada paid 1,250 euros for a cello.", [3]),
    (JONAS, "Jonas leitet die Buchhaltung bei Kranbau Süd und kommt mit dem Zug aus Ulm.", [1, 2]),
    (KEN, "田中健は大阪の歯科医で、娘が2人いる。", [1, 2]),
    (VERA, "Вера работает врачом и живёт в Казани с 2015 года.", [1, 2]),
]

UNSUPPORTED = [
    (ADA, "", [1]),
    (ADA, "Ada paid 1250 euros for a cello.", [3]),
    (ADA, "Ada Lind works at Lumen.", []),
    (ADA, "Ada Lind works at Lumen.", [0]),
    (ADA, "Ada Lind works at Lumen.", [5]),
    (ADA, "Ada Lind works at Lumen.", [2]),
    (ADA, "She has worked at Lumen since 2023.", [1]),
    (ADA, "She has worked at Lumen since May 2024.", [1]),
    (ADA, "She has three dogs: Pixel, Nori and Fido.", [2]),
    (ADA, "Ada paid 1350 euros for a cello.", [3]),
    (ADA, "Ada Lind and Tove have two dogs.", [2]),
    (ADA, "A warm person whom colleagues admire for her patience.", [4]),
    (ADA, "Her card is 4111.", [1]),
    (ADA, "word " * 200, [1]),
    (JONAS, "Jonas kommt mit dem Zug aus Ulm.", [1]),
    (JONAS, "Jonas leitet die Buchhaltung seit 2021.", [1]),
    (KEN, "田中健には娘が3人いる。", [2]),
    (KEN, "田中健は大阪に住んでいる。", [2]),
    (VERA, "Вера живёт в Казани с 2016 года.", [1]),
]


def test_what_the_facts_say_stays_and_all_else_is_dropped() -> None:
    problems = {content: check.find_problem(content, numbers) for check, content, numbers in SUPPORTED}
    assert {content: problem for content, problem in problems.items() if problem} == {}
    assert [content for check, content, numbers in UNSUPPORTED if not check.find_problem(content, numbers)] == []


def test_a_profile_has_so_many_sentences_and_each_cites_a_fact_once() -> None:
    kept = ADA.keep_supported([("Ada  Lind works\nat Lumen.", [1, 1])] * (MAX_SENTENCES + 3))
    assert len(kept) == MAX_SENTENCES
    assert (kept[0].content, kept[0].memory_ids) == ("Ada Lind works at Lumen.", ["m1"])


@given(
    st.lists(st.integers(min_value=0, max_value=9999), min_size=1, max_size=4, unique=True),
    st.integers(min_value=0, max_value=9999),
)
def test_no_sentence_has_a_number_that_its_fact_does_not_have(told: list[int], number: int) -> None:
    check = check_of([f"The code of gate {value} is not known." for value in told], ["gate"])
    content = f"The code of gate {number} is not known."
    kept = {value for value in told if check.keep_supported([(content, [told.index(value) + 1])])}
    assert kept == {value for value in told if value == number}

"""Identifiers in a text: what is one, and which texts have it."""

from __future__ import annotations

from graphmem.text.names import find_identifiers, names_each, names_other

SAME = (
    ("Was INV-20231 paid?", "Invoice inv 20231 was paid"), ("When does LH1400 leave?", "Flight LH-1400 leaves at 9:00"),
    ("When does bus no. 42 leave?", "Bus 42 leaves at 8"), ("When does bus number 42 leave?", "Bus 42 leaves at 8"),
    ("What about #77?", "Ticket 77 is about a printer"), ("Is the iPhone14 charged?", "The iPhone 14 is charged"),
    ("Who sits in seat 12A?", "Mara has seat 12a"), ("航班LH1401什么时候起飞?", "航班LH1401九点起飞"),
    ("Wann fährt der Bus Nr. 7?", "Der Bus 7 fährt um acht"), ("Is the Boeing 737-800 full?", "The 737-800 is full"),
)  # fmt: skip
OTHER = (
    ("Was INV-20232 paid?", "Invoice INV-20231 was paid"), ("When does BA1400 leave?", "Flight LH1400 leaves at 9:00"),
    ("When does bus no. 43 leave?", "Bus 42 leaves at 8"), ("When does bus number 43 leave?", "Bus 42 leaves at 8"),
    ("What about #78?", "Ticket #77 is about a printer"), ("Is the iPhone15 charged?", "The iPhone 14 is charged"),
    ("Who sits in seat 12B?", "Mara has seat 12A"), ("航班LH1402什么时候起飞?", "航班LH1401九点起飞"),
    ("Wann fährt Bus Nr. 8?", "Der Bus Nr. 7 fährt um acht"), ("LH1402은 언제 출발해요?", "LH1401은 9시에 출발해요"),
    ("Who runs Windows Server 2012?", "Ada runs Windows Server 2019"), ("What is ASR1605?", "ASX1605 is a sensor"),
    ("Is version 12.3 out?", "Version 1.23 is out"), ("Who is at 10.0.0.2?", "The server has the address 10.0.0.1"),
    ("Which printer is 192.168.1.8:9100?", "The printer is at 192.168.1.7"), ("ISBN 978-3-16-1?", "It is 978-3-16-2"),
)  # fmt: skip

TIMES = (
    "What did I paint on October 13, 2023?", "Who left in the week before 16 November?", "Where was I in summer 2021?",
    "Was the meeting 3 May?", "Who has worked here since 2019?", "What happened on Friday 13?",
    "Was war im Oktober 2023?", "Was habe ich am 13. Oktober gemacht?", "Qu'ai-je fait en octobre 2023 ?",
    "¿Qué hice el 13 de octubre de 2023?", "Co robiłem 13 października 2023?", "Что я делал 13 октября 2023 года?",
    "我10月13日做了什么?", "10월 13일에 뭐 했어?",
)  # fmt: skip


def test_days_months_and_years_are_no_identifiers_in_any_language() -> None:
    for question in TIMES:
        assert find_identifiers(question, ("en",)) == [], question


def test_identifiers_are_words_with_numbers_and_no_times_or_amounts() -> None:
    text = "In 2023, at 8:30, invoice INV-20231 of LH1400 for room 12 was 5 km off and cost $300, 20€ or 5%; see no. 7"
    assert [found.token for found in find_identifiers(text, ("en",))] == ["inv20231", "lh1400", "12", "7"]


def test_an_identifier_is_found_in_another_spelling_and_never_as_another_one() -> None:
    for question, text in SAME:
        asked = find_identifiers(question, ("en", "de"))
        assert asked, question
        assert names_each(asked, text), question
        assert not names_other(asked, text, ("en", "de")), question
    for question, text in OTHER:
        asked = find_identifiers(question, ("en", "de"))
        assert names_other(asked, text, ("en", "de")), question


def test_a_text_without_the_identifier_does_not_have_it_and_names_no_other() -> None:
    asked = find_identifiers("What does ASR1605 cost?", ("en",))
    for text in ("Invoice INV-20231 was paid", "Sensors cost 3 dollars", "Bus 1605 leaves at 8"):
        assert not names_each(asked, text), text
        assert not names_other(asked, text, ("en",)), text
    assert names_each(find_identifiers("What did I do in March 2023?", ("en",)), "The user visited Rome")

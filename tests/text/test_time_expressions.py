"""Times in questions and statements."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graphmem.text.time_expressions import (
    TimeExpression,
    TimeRange,
    find_time_expressions,
    find_time_ranges,
    names_year,
)
from graphmem.text.word_lists import LANGUAGES, WESTERN_LANGUAGES

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)

TIMES_BY_TEXT = {
    # English
    "Show me my spending last week": "week 2026-06-03",
    "dining last month": "month 2026-05-10",
    "a plan for next month": "month 2026-07-10",
    "so far this month?": "month 2026-06-10",
    "How much did I spend on 3 March?": "day 2026-03-03",
    "What did I do yesterday evening?": "part_of_day 2026-06-09 18:00",
    "Remind me next Friday at 5pm": "time 2026-06-12 17:00",
    "I moved here two years ago": "year 2024-06-10",
    "What happened the day before yesterday": "day 2026-06-08",
    "on Monday": "day 2026-06-08",
    "They may march in May": "month 2026-05-10",
    "The previous week was hard": "week 2026-06-03",
    "3 weeks ago I quit": "week 2026-05-20",
    "We go in May or in June": "month 2026-05-10, month 2026-06-10",
    # German
    "Was habe ich letzte Woche ausgegeben?": "week 2026-06-03",
    "letzten Monat": "month 2026-05-10",
    "Nächsten Monat ziehe ich um": "month 2026-07-10",
    "Vor drei Tagen war ich krank": "day 2026-06-07",
    "vor einer Woche": "week 2026-06-03",
    "Was war letzten Freitag?": "day 2026-06-05",
    "Heute Abend koche ich": "day 2026-06-10",
    "Was hast du im Mai gemacht?": "month 2026-05-10",
    # French
    "Combien ai-je dépensé le mois dernier ?": "month 2026-05-10",
    "la semaine prochaine": "week 2026-06-17",
    "Hier soir j'étais au cinéma": "part_of_day 2026-06-09 20:00",
    "il y a trois jours": "day 2026-06-07",
    "l'an dernier": "year 2025-06-10",
    "Rendez-vous lundi prochain": "day 2026-06-15",
    # Spanish
    "¿Cuánto gasté la semana pasada?": "week 2026-06-03",
    "el mes pasado": "month 2026-05-10",
    "Me mudé hace dos semanas": "week 2026-05-27",
    "hace un mes": "month 2026-05-10",
    "La semana que viene voy a Madrid": "week 2026-06-17",
    "pasado mañana": "day 2026-06-12",
    "Mañana voy al banco": "day 2026-06-11",
    # Italian
    "Quanto ho speso la settimana scorsa?": "week 2026-06-03",
    "tre giorni fa": "day 2026-06-07",
    "l'anno scorso": "year 2025-06-10",
    "Il mese prossimo vado a Roma": "month 2026-07-10",
    "l'altro ieri": "day 2026-06-08",
    "Ci vediamo venerdì": "day 2026-06-05",
    # Portuguese
    "Quanto gastei na semana passada?": "week 2026-06-03",
    "no mês passado": "month 2026-05-10",
    "há três dias": "day 2026-06-07",
    "Depois de amanhã viajo": "day 2026-06-12",
    "em março de 2024": "month 2024-03-10",
    # Dutch
    "Hoeveel heb ik vorige week uitgegeven?": "week 2026-06-03",
    "drie dagen geleden": "day 2026-06-07",
    "over drie weken": "week 2026-07-01",
    "Wat deed ik gisteren?": "day 2026-06-09",
    # Polish
    "Ile wydałem w zeszłym tygodniu?": "week 2026-06-03",
    "trzy dni temu": "day 2026-06-07",
    "w przyszłym roku": "year 2027-06-10",
    # Russian
    "Сколько я потратил на прошлой неделе?": "week 2026-06-03",
    "три дня назад": "day 2026-06-07",
    "Завтра я уезжаю": "day 2026-06-11",
    # Japanese, Chinese, Korean
    "昨日何を買いましたか": "day 2026-06-09",
    "先週": "week 2026-06-03",
    "上个月我花了多少钱": "month 2026-05-10",
    "어제 뭐 샀어?": "day 2026-06-09",
}
"""Texts with the times that they name, as of noon of 10 June 2026, a Wednesday."""

NO_TIMES = (
    "may I ask you something",
    "on second thoughts I will stay",
    "March on, soldiers",
    "we sat down in the sun",
    "a second helping, please",
    "the last day of school",
    "1990s music",
    "room 12 on floor 3",
    "Hier bin ich zu Hause",
    "Ich mag das",
    "Je suis là",
    "il marche mais lentement",
    "Me gusta el sol",
    "Tengo un año de experiencia",
    "Mi piace il sole",
    "Het is een dag als alle andere",
)
"""Texts that name no time, with words that do in this or in another language."""


def at(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What happened in May 2023?", at(2023, 5, 1), at(2023, 6, 1)),
        ("where was she in 2021", at(2021, 1, 1), at(2022, 1, 1)),
        ("what did I do yesterday", at(2026, 6, 9), at(2026, 6, 10)),
        ("what happened on 3 March 2024?", at(2024, 3, 3), at(2024, 3, 4)),
        ("what did she say last week", at(2026, 6, 1), at(2026, 6, 8)),
        ("where did we go in August?", at(2025, 8, 1), at(2025, 9, 1)),
        ("where did we go in May?", at(2026, 5, 1), at(2026, 6, 1)),
    ],
)
def test_times_in_a_question_are_days_weeks_months_or_years(question: str, start: int, end: int) -> None:
    assert find_time_ranges(question, NOW) == [TimeRange(start, end)]


@pytest.mark.parametrize("languages", [("en",), WESTERN_LANGUAGES])
@pytest.mark.parametrize(
    "text",
    [
        *("you may do it now", "who sat on the second chair", "room 12", "", "?" * 600, "a week off", "$85 or 92%"),
        "code 4821",
    ],
)
def test_ambiguous_words_and_plain_numbers_are_no_times(text: str, languages: tuple[str, ...]) -> None:
    assert find_time_ranges(text, NOW, languages) == []


NAMES_WITH_NUMBERS = (
    *("Who develops Windows Server 2012?", "What about issue #1234?", "Who sleeps in room 1803?"),
    *("Does the Peugeot 2008 need tyres?", "order no. 2023", "What does RFC 2024 say?", "is version 2020.1 out"),
    *("Do 2017 people work here?", "Are there 2017 files?", "The rent is 1950", "Die Miete ist 1950", "rent is 1150"),
    *("Wer wartet Windows Server 2012?", "in Raum 1803", "¿Quién usa Office 2019?", "Qui conduit la Peugeot 2008 ?"),
)

YEARS = {
    "where was she in 2021": [2021],
    "in 2017 people moved": [2017],
    "my 2017 budget": [2017],
    "How high was the rent in 1950?": [1950],
    "What changed between 2019 and 2021?": [2019, 2021],
    "the 2012 edition of Windows Server 2016": [2012],
    "Did my 2021 trip cost more than the one (2019)?": [2021, 2019],
    "2018, how was it?": [2018],
    "Who used the Peugeot 2008 during 2015?": [2015],
    "Wo war ich seit 2019?": [2019],
    "Qu'ai-je fait en 2020 ?": [2020],
    "Where was I last in summer 2019?": [2019],
}


@pytest.mark.req("QUINN-24")
@pytest.mark.parametrize("languages", [("en",), LANGUAGES])
@pytest.mark.parametrize("text", NAMES_WITH_NUMBERS)
def test_a_number_in_a_name_is_no_year(text: str, languages: tuple[str, ...]) -> None:
    assert find_time_expressions(text, datetime(2026, 6, 10, 12), languages) == []


def test_a_statement_names_a_year_unless_it_belongs_to_a_name() -> None:
    dated = ["Mara moved in March 2021", "The lease ends on 3.4.2027", "Born 2001-02-03", "Ada left in 2019"]
    assert all(map(names_year, [*dated, *YEARS]))
    assert not any(map(names_year, ["Ada runs Windows Server 2012", "Mara drives a Peugeot 2008", "It is room 1804"]))


@pytest.mark.req("QUINN-24")
@pytest.mark.parametrize(("text", "years"), YEARS.items())
def test_a_year_stands_alone_or_after_a_function_word(text: str, years: list[int]) -> None:
    expressions = find_time_expressions(text, datetime(2026, 6, 10, 12), LANGUAGES)
    assert [expression.at.year for expression in expressions] == years


@pytest.mark.req("TRUE-08")
@pytest.mark.parametrize(("text", "times"), TIMES_BY_TEXT.items())
def test_a_time_is_read_in_the_language_of_the_text(text: str, times: str) -> None:
    """Each time is given as its precision and its day, or its time on that day."""
    expressions = find_time_expressions(text, datetime(2026, 6, 10, 12), LANGUAGES)
    found = [
        f"{expression.precision} {expression.at:%Y-%m-%d %H:%M}".removesuffix(" 00:00").removesuffix(" 12:00")
        for expression in expressions
    ]
    assert ", ".join(found) == times


@pytest.mark.parametrize("languages", [("en",), LANGUAGES])
@pytest.mark.parametrize("text", NO_TIMES)
def test_words_that_mean_a_time_elsewhere_are_no_times(text: str, languages: tuple[str, ...]) -> None:
    assert find_time_expressions(text, datetime(2026, 6, 10, 12), languages) == []


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("Was habe ich letzte Woche ausgegeben?", at(2026, 6, 1), at(2026, 6, 8)),
        ("Combien ai-je dépensé le mois dernier ?", at(2026, 5, 1), at(2026, 6, 1)),
        ("¿Cuánto gasté el año pasado?", at(2025, 1, 1), at(2026, 1, 1)),
        ("先週は何をしましたか", at(2026, 6, 1), at(2026, 6, 8)),
    ],
)
def test_a_question_in_another_language_than_those_configured_is_read_in_its_own(
    question: str, start: int, end: int
) -> None:
    assert find_time_ranges(question, NOW, ("en",)) == [TimeRange(start, end)]


def test_an_expression_has_its_words_its_time_and_its_precision() -> None:
    base = datetime(2026, 6, 10, 12)
    assert find_time_expressions("Was habe ich gestern um 15:30 gekauft?", base, WESTERN_LANGUAGES) == [
        TimeExpression("gestern um 15:30", datetime(2026, 6, 9, 15, 30), "time")
    ]


def test_a_month_without_a_year_is_past_only_if_asked() -> None:
    base = datetime(2026, 6, 10)
    (nearest,) = find_time_expressions("in August", base, ("en",))
    (past,) = find_time_expressions("in August", base, ("en",), prefer_past=True)
    assert (nearest.at.year, past.at.year) == (2026, 2025)


@pytest.mark.parametrize(
    "text",
    [
        "Bake it at 180° and let it cool to 70° before you cut it",
        "the parts are \\frac{13}{4} and {51}{2}",
        "<h5>Contents</h5> comes before <h6>",
        "GET /reports returns 1000 rows from node [-1]",
        "We won 3 of 7.\nThe others lost 12 in a row!",
    ],
)
def test_numbers_of_measures_formulas_and_code_are_no_times(text: str) -> None:
    assert find_time_expressions(text, NOW.replace(tzinfo=None), ["en"]) == []


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("We met on 3 March 2025. It was cold!\nThere were 40 guests. In June 2027 we move.", "2025-03-03 2027-06-10"),
        ("Wir trafen uns am 3. März 2025. Es war kalt!\nMit 40 Leuten. Am 5. Mai fahren wir.", "2025-03-03 2026-05-05"),
    ],
)
def test_times_are_found_in_each_sentence_of_a_text(text: str, days: str) -> None:
    found = find_time_expressions(text, NOW.replace(tzinfo=None), ["en"])
    assert [expression.at.date().isoformat() for expression in found] == days.split()


def test_a_range_contains_its_start_and_not_its_end() -> None:
    time_range = TimeRange(10, 20)
    assert [time_range.contains(time) for time in (9, 10, 19, 20)] == [False, True, True, False]


RANGES = tomllib.loads((Path(__file__).parent / "time_cases.toml").read_text(encoding="utf-8"))


@pytest.mark.req("TRUE-08")
@pytest.mark.parametrize(
    ("text", "days"), [case for language, cases in RANGES.items() if language != "none" for case in cases.items()]
)
def test_a_range_of_days_is_read_with_its_start_and_end(text: str, days: str) -> None:
    start, end = (datetime.fromisoformat(day) for day in days.split())
    (expression,) = find_time_expressions(text, datetime(2026, 6, 10, 12), LANGUAGES)
    if expression.until is not None:
        assert (expression.at, expression.until) == (start, end)
    else:
        assert TimeRange(at(start.year, start.month, start.day), at(end.year, end.month, end.day)).contains(
            int(expression.at.replace(tzinfo=UTC).timestamp() * 1000)
        )
        assert expression.precision in ("day", "week", "month")


@pytest.mark.req("TRUE-08")
@pytest.mark.parametrize("text", RANGES["none"]["en"])
def test_words_of_ranges_that_mean_something_else_are_no_times(text: str) -> None:
    assert find_time_expressions(text, datetime(2026, 6, 10, 12), LANGUAGES) == []

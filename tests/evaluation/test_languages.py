"""The languages of sentences."""

from __future__ import annotations

import pytest

from quality.languages import Language, is_written_in

SENTENCES: list[tuple[Language, str]] = [
    ("en", "Mara moved from Leeds to York in 2021 with her sister."),
    ("de", "Jörg ist am 27. November auf einer Fortbildung in Erfurt."),
    ("es", "Lucía vive en Bogotá y entrega su tesis el 30 de noviembre."),
    ("fr", "Gaël ne refait pas la toiture avant le 12 juin."),
    ("it", "La stufa di Gianni è da 9 kW e non consuma più di 18 sacchi."),
    ("pt", "A Rita comprou um relógio para o pai da Inês."),
    ("ja", "葵は京都の研究室に戻る。"),
    ("zh", "志远十一月要去成都出差。"),
]


@pytest.mark.parametrize(("language", "sentence"), SENTENCES)
def test_a_sentence_is_in_one_language(language: Language, sentence: str) -> None:
    assert [name for name, _ in SENTENCES if is_written_in(sentence, name)] == [language]


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("de", "Jörg hat am Dienstag einen Termin with his dentist."),
        ("en", "Mara lives in Leeds und arbeitet bei der Post."),
        ("fr", "Chloé commence un traitement for her thyroid with the doctor."),
        ("ja", "Naomi's daughter started kindergarten に行く"),
    ],
)
def test_a_mixed_sentence_is_in_neither(language: Language, sentence: str) -> None:
    assert not is_written_in(sentence, language)


def test_names_and_quoted_titles_do_not_change_the_language() -> None:
    assert is_written_in("Eva wohnt seit 2019 in Los Angeles.", "de")
    assert is_written_in('Eva mag das Buch "The Wind in the Willows".', "de")
    assert is_written_in("志远的公司叫 Blue Harbour。", "zh")

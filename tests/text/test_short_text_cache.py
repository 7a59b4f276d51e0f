"""Results of short texts are kept, those of long ones are not."""

from __future__ import annotations

from graphmem.text.normalising import MAX_KEPT_CHARACTERS, cache_short_texts


def test_a_short_text_is_read_once_and_a_long_one_each_time() -> None:
    read: list[str] = []

    @cache_short_texts
    def length(text: str) -> int:
        read.append(text)
        return len(text)

    short, long = "a" * MAX_KEPT_CHARACTERS, "a" * (MAX_KEPT_CHARACTERS + 1)
    assert [length(short), length(short), length(long), length(long)] == [500, 500, 501, 501]
    assert read == [short, long, long]

"""Results of texts are kept, those of very long ones are not."""

from __future__ import annotations

from graphmem.text.text_cache import MAX_LONG_CHARACTERS, MAX_SHORT_CHARACTERS, cache_by_text


def test_a_text_is_read_once_and_a_very_long_one_each_time() -> None:
    read: list[int] = []

    @cache_by_text
    def length(text: str) -> int:
        read.append(len(text))
        return len(text)

    lengths = [MAX_SHORT_CHARACTERS, MAX_LONG_CHARACTERS, MAX_LONG_CHARACTERS + 1]
    for size in lengths:
        assert [length("a" * size), length("a" * size)] == [size, size]
    assert read == [*lengths, MAX_LONG_CHARACTERS + 1]

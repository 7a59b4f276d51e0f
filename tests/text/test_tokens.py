"""Tokens are counted as GPT-4 counts them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.text.token_counts import count_tokens, truncate_to_tokens


@pytest.mark.req("TRUE-12")
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 9),
        ("<|endoftext|>", 7),
    ],
)
def test_counts_are_those_of_cl100k_base(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(st.text(max_size=200), st.integers(0, 60))
def test_truncated_text_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    kept = truncate_to_tokens(text, limit)
    assert text.startswith(kept)
    assert count_tokens(kept) <= limit
    assert kept == text or count_tokens(text) > limit


def test_truncation_fills_the_token_limit() -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 50
    assert count_tokens(truncate_to_tokens(text, 100)) == 100


def test_truncation_never_splits_a_character() -> None:
    assert all(set(truncate_to_tokens("🙂🚀" * 20, limit)) <= {"🙂", "🚀"} for limit in range(40))


def test_lone_surrogate_is_counted() -> None:
    assert count_tokens("\ud800") == 1


@pytest.mark.parametrize("text", ["a", " ", "1", "\n", "e\u0301", "🙂", "漢"])
def test_a_million_times_the_same_character_is_counted(text: str) -> None:
    many = text * (1_000_000 // len(text))
    assert 0 < count_tokens(many) <= 3 * len(many)


def test_counting_needs_neither_network_nor_local_extra() -> None:
    script = """
import socket, sys

def refuse(*_):
    raise AssertionError("asked the net")

socket.socket.connect = socket.getaddrinfo = refuse
for name in ("sentence_transformers", "transformers", "torch", "tokenizers"):
    sys.modules[name] = None
from graphmem.text.token_counts import count_tokens
print(count_tokens("tiktoken is great!"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240)
    assert (done.stdout.strip(), done.returncode) == ("6", 0), done.stderr

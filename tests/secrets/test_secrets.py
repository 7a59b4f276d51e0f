"""Finding secrets in texts and JSON values, and redacting them."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from stdnum import luhn

from graphmem.conversations.session import text_of
from graphmem.memories.entity import EntityIn
from graphmem.memories.memory import MemoryIn, MemorySourceIn
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.field_types import stored_values
from graphmem.runtime.settings import Settings
from graphmem.secrets import scanner
from graphmem.secrets.detection import SECRET_CLASSES
from graphmem.secrets.scanner import SecretPolicy, find_secrets, redact, scan_value

SENTENCES = yaml.safe_load((Path(__file__).parent / "secret_sentences.yaml").read_text(encoding="utf-8"))
REFUSED = [
    (cls, text) for group in ("refused", "disguised") for cls, texts in SENTENCES[group].items() for text in texts
]

# Text made of what the detectors look for, so that the fuzzer reaches them.
FRAGMENTS = st.sampled_from(
    ["password", " is ", "PIN ", ": ", "4111", " 1111 ", "-", ".", "account ", "DE89", " 3704", "@", "example",
     "&#8203;", "&nbsp;", "%20", "4lll", " and ", "\u0430", "login: ada / ",
     ".com", "+49 ", "0171/", "1234567", " Street ", "12 ", "rue ", "de la ", "Hauptstraße ", "born on ", "5 ",
     "March ", "1990",
     "\u200b", "\uff11", "\u0661", "sk-", "eyJ", "Bearer ", "[card]", "[password]", "-----BEGIN PRIVATE KEY-----", "'",
     '"', "\n", "(", ")", "token=", "a1b2c3d4", " at ", " dot ", "密码是", "ﬀ", "e\u0301", "\ud800"]
)  # fmt: skip
FUZZ = st.one_of(
    st.text(max_size=200),
    st.lists(FRAGMENTS, max_size=25).map("".join),
    st.text(alphabet="0123456789 -./()+", max_size=80),
)


@pytest.mark.req("CASH-11")
def test_secrets_are_found_with_their_classes() -> None:
    found = {text: {finding.cls for finding in find_secrets(text)} for _, text in REFUSED}
    assert [(cls, text) for cls, text in REFUSED if cls not in found[text]] == []


@pytest.mark.req("CASH-11")
def test_lookalikes_are_no_secrets() -> None:
    texts = [text for group in ("kept", "innocent", "temporary", "lasting") for text in SENTENCES[group]]
    assert {text: found for text in texts if (found := find_secrets(text))} == {}


@pytest.mark.req("CASH-11")
def test_redacted_sentences_name_the_class_and_contain_no_secret() -> None:
    redacted = [(cls, redact(text)) for cls, text in REFUSED]
    assert [(cls, text) for cls, text in redacted if f"[{cls}]" not in text or find_secrets(text)] == []


def test_offsets_refer_to_the_original_text() -> None:
    text = "Ｃａｒｄ：\u200b４１１１\u200b１１１１\u200d１１１１１１１１ and ali\u200bce@example.com"
    assert [(finding.cls, text[finding.start : finding.end]) for finding in find_secrets(text)] == [
        ("card", "４１１１\u200b１１１１\u200d１１１１１１１１"),
        ("email", "ali\u200bce@example.com"),
    ]


def test_redaction_keeps_the_surrounding_text() -> None:
    text = "Ann (ann@example.com) pays with 4111 1111 1111 1111, password: hunter2!"
    assert redact(text) == "Ann ([email]) pays with [card], password: [password]!"


def test_number_gets_a_single_class() -> None:
    assert [finding.cls for finding in find_secrets("My account number is 0171 1234567")] == ["account_number"]


def test_region_selects_its_phone_number_format() -> None:
    assert [finding.cls for finding in find_secrets("llámame al 55 1234 5678", region="MX")] == ["phone"]


@pytest.mark.req("CASH-11")
def test_luhn_valid_issuer_number_is_found_in_any_grouping() -> None:
    rng = random.Random(7)
    for _ in range(300):
        digits = rng.choice(["4", "51", "55", "2221", "6011", "65"])
        digits += "".join(rng.choice("0123456789") for _ in range(15 - len(digits)))
        digits += luhn.calc_check_digit(digits)
        separator = rng.choice(["", " ", "-", ".", "\u2009", "\u200b"])
        number = separator.join(digits[at : at + 4] for at in range(0, 16, 4))
        assert "card" in {finding.cls for finding in find_secrets(f"pay with {number} please")}, number


CARD = "4111111111111111"
DIGIT_WORDS = {
    "en": "zero one two three four five six seven eight nine",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "it": "zero uno due tre quattro cinque sei sette otto nove",
    "pt": "zero um dois três quatro cinco seis sete oito nove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen",
}


@pytest.mark.req("CASH-11")
@pytest.mark.parametrize(
    "separator", ["    ", "|", ":", "+", " + ", ", ", "; ", ") (", "][", "},{", "\t", "\n", " | ", "=", "~", "·", "/"]
)
def test_card_is_found_with_anything_between_its_groups(separator: str) -> None:
    text = f"({separator.join(CARD[at : at + 4] for at in range(0, 16, 4))})"
    assert redact(text) == "([card])"


@pytest.mark.req("CASH-11")
def test_card_is_found_in_two_lines_and_numbers_of_codes_in_two_lines_are_none() -> None:
    for break_at in (4, 9, 14):
        number = " ".join(CARD[at : at + 4] for at in range(0, 16, 4))
        assert redact(f"noted: {number[:break_at]}\n{number[break_at + 1 :]}") == "noted: [card]"
    for codes in ("codes 1234 5678\n9012 3456", "2011 2012\n2013 2014"):
        assert redact(codes) == codes


@pytest.mark.req("CASH-11")
def test_numbers_are_found_in_words_for_two_digits() -> None:
    assert redact("SSN is five twelve, forty-four, nineteen eighty-seven") == "SSN is [ssn]"
    assert redact("Karte: elf, zwölf, dreizehn, vierzehn Gäste") == "Karte: elf, zwölf, dreizehn, vierzehn Gäste"
    groups = "forty-one eleven, eleven eleven; eleven eleven, eleven eleven"
    assert redact(f"my card number: {groups}") == "my card number: [card]"


@pytest.mark.req("CASH-11")
@pytest.mark.parametrize("mark", ["\u0301", "\u0336", "\u20e3", "\u0301\u0336" * 6])
def test_card_is_found_with_marks_on_its_digits(mark: str) -> None:
    assert redact("pay with " + "".join(digit + mark for digit in CARD)).rstrip(mark) == "pay with [card]"


@pytest.mark.req("CASH-11")
@pytest.mark.parametrize("language", DIGIT_WORDS)
def test_card_is_found_in_the_words_of_its_digits(language: str) -> None:
    words = DIGIT_WORDS[language].split()
    spoken = ", ".join(words[int(digit)] for digit in CARD)
    assert redact(f"{spoken}.") == "[card]."
    counted = ", ".join(words[1:])
    assert redact(counted) == counted


@pytest.mark.parametrize("separator", ["\t", "   ", "/", "|", "_", ", ", "\n"])
def test_iban_is_found_with_anything_between_its_groups(separator: str) -> None:
    assert redact(separator.join(["DE89", "3704", "0044", "0532", "0130", "00"])) == "[iban]"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("219099999 is my SSN", "[ssn] is my SSN"),
        ("use 219-09-9999 as the social security number", "use [ssn] as the social security number"),
        ("account number 654321", "account number [account_number]"),
        ("654321 is her account number", "[account_number] is her account number"),
        ("Visa 4012888888881881, expires 11/28, security code 911.", "Visa [card]."),
        ("call +1-212-555-0147 x12", "call [phone]"),
        ("pay with 4242 4242 4242 4242, valid until 12/27.", "pay with [card]."),
        ("I live at 221B Baker Street, London NW1 6XE.", "I live at [street_address]."),
        ("Send it to Flat 3, 12 Elm Road, Leeds, please", "Send it to [street_address], please"),
        ("Wohnt in der Lindenstraße 12, 50674 Köln.", "Wohnt [street_address]."),
        ("48 Acacia Avenue, Springfield, IL 62704", "[street_address]"),
        ("my  password   is\thunter2", "my  password   is\t[password]"),
    ],
)
def test_label_after_a_number_and_what_belongs_to_it_are_read(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "session a1b2c3d4-4111-1111-1111-1111abcdefab",
        "commit 4111111111111111a4111111111111111b411111",
        "4111 | 1111 | 1111 | 1111 | 1111 | 1111",
        "The account has 250000 followers",
    ],
)
def test_ids_and_long_lists_are_no_cards(text: str) -> None:
    assert find_secrets(text) == []


@pytest.mark.parametrize("around", [scanner.WINDOW, 2 * scanner.WINDOW])
@pytest.mark.parametrize("before", [0, 1, 7, 16, 19, 40])
def test_secret_in_a_long_text_is_found_wherever_it_lies(around: int, before: int) -> None:
    number = "4111 1111 1111 1111"
    text = "word " * ((around - before) // 5) + "- " * 3 + number + " more" * 4_000
    assert [text[finding.start : finding.end] for finding in find_secrets(text)] == [number]


def test_secret_that_is_longer_than_a_window_is_removed_to_its_end() -> None:
    line = "MIIEpAIBAAKCAQEA7bq2Q2x0Zm9vYmFy\n"
    key = f"-----BEGIN PRIVATE KEY-----\n{line * 400}-----END PRIVATE KEY-----"
    assert redact(f"{'word ' * 1500}{key} bye") == f"{'word ' * 1500}[api_key] bye"
    token = "ghp_" + "a1B2" * 5_000
    assert redact(f"{'word ' * 1500}{token} bye") == f"{'word ' * 1500}[api_key] bye"


@given(FUZZ)
def test_redaction_leaves_nothing_to_find_in_any_text(text: str) -> None:
    findings = find_secrets(text)
    assert all(0 <= finding.start < finding.end <= len(text) for finding in findings)
    redacted = redact(text)
    assert find_secrets(redacted) == []
    assert redact(redacted) == redacted
    assert findings or redacted == text


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit",
    ["1", "1 ", "12-", "0171 ", "a@", "a.", "password is ", "pin ", "Am ", "12 Ab ", "born ", "DE12", "account 1", "(",
     "-----BEGIN PRIVATE KEY-----", "eyJa.", "rue de la ", "Hauptstraße ", "www.", "é\u0301", "５ ", "spent $5 ",
     "token=", "a at b dot ", "May 5 ", "x" * 50 + " "],
)  # fmt: skip
def test_repetitive_text_does_not_stall_redaction(unit: str) -> None:
    redact((unit * 8000)[:8000])


@pytest.mark.parametrize(
    ("value", "classes"),
    [
        ({"contact": {"mail": ["x", "alice@example.com"]}}, {"email"}),
        ({"alice@example.com": 1}, {"email"}),
        ({"password": "hunter2"}, {"password"}),
        ({"apiKey": "9f8a7b6c5d4e3f2a1b0c"}, {"api_key"}),
        ({"account_number": 12345678}, {"account_number"}),
        ({"phoneNumbers": ["4155552671"]}, {"phone"}),
        ({"birthDate": "1990-03-05"}, {"birth_date"}),
        ({"card": 4111111111111111}, {"card"}),
        (
            {
                "password_reset": True,
                "password": "required",
                "score": 0.4111111111111111,
                "at": 1700000000,
                "note": None,
            },
            set(),
        ),
        (["tag", "4111-1111-1111-1111"], {"card"}),
        ({"numbers": [4111, 1111, 1111, 1111]}, {"card"}),
        ({"card": {"first": 4111, "second": 1111, "third": 1111, "fourth": 1111}}, {"card"}),
        ({"iban": ["DE89", "3704", "0044", "0532", "0130", "00"]}, {"iban"}),
        ({"bank": {"account": {"number": 654321}}}, {"account_number"}),
        ({"years": [2019, 2020, 2021, 2022], "sizes": [1024, 2048, 4096, 8192], "zeros": [0] * 16}, set()),
        (["I forgot my password:", "hello4you"], set()),
        ("plain words", set()),
    ],
)
def test_metadata_is_scanned_in_keys_and_values(value: Any, classes: set[str]) -> None:
    assert scan_value(value) == classes


def test_deeply_nested_metadata_is_scanned_to_the_bottom() -> None:
    value: Any = "alice@example.com"
    for _ in range(5000):
        value = [value]
    assert scan_value(value) == {"email"}


def test_every_text_of_a_request_is_read_also_one_of_a_new_field() -> None:
    class Extended(MemoryIn):
        note: str = ""
        places: list[EntityIn] = Field(default_factory=list)

    number = "4111 1111 1111 1111"
    plain = Extended(content="Mara rows", note="a note", valid_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert scan_value(stored_values(plain)) == set()
    for change in (
        {"note": number},
        {"places": [EntityIn(name=number)]},
        {"places": [EntityIn(name="here", type="Card 4111 1111 1111 1111")]},
        {"predicate": "PAYS_WITH_4111_1111_1111_1111"},
        {"source": MemorySourceIn(message_ids=["m1", number])},
    ):
        assert scan_value(stored_values(plain.model_copy(update=change))) == {"card"}, change


@pytest.mark.req("QUINN-41")
def test_policy_allows_a_class_globally_or_for_one_tenant() -> None:
    policy = SecretPolicy(["email", " acme:account_number"])
    text = "Account number 12345678 of alice@example.com, password: hunter2"
    assert policy.refused_classes(text, "default") == ["account_number", "password"]
    assert policy.refused_classes(text, "acme") == ["password"]
    assert SecretPolicy().refused_classes(text, "acme") == ["account_number", "email", "password"]


def test_allowed_secret_classes_setting_is_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_ALLOWED_SECRET_CLASSES", "birth_date, acme:email")
    policy = SecretPolicy(Settings(_env_file=None).allowed_secret_classes)
    assert policy.allowed_classes("default") == {"birth_date"}
    assert policy.allowed_classes("acme") == {"birth_date", "email"}


def test_allowing_one_class_does_not_allow_overlapping_ones() -> None:
    policy = SecretPolicy(["phone", "email", "account_number"])
    assert policy.refused_classes("4111 1111 1111 1111", "default") == ["card"]
    assert policy.refused_classes("My password is alice@example.com1", "default") == ["password"]


def test_policy_with_unknown_class_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"'adress'.*street_address"):
        SecretPolicy(["adress"])


def test_sample_sentences_cover_every_class() -> None:
    assert set(SENTENCES["refused"]) == set(SECRET_CLASSES)


@pytest.mark.parametrize(
    ("parts", "cls"),
    [
        (["My card is 4111 1111", "1111 1111"], "card"),
        (["card: 4111-1111-", "1111-1111"], "card"),
        (["SSN 512-44", "1987"], "ssn"),
        (["Rooms 4111 and 1111", "2222 and 1111"], None),
        (["4111 1111", "1111 1111"], "card"),
    ],
)
def test_a_number_is_found_that_goes_on_in_the_next_part_of_a_message(parts: list[str], cls: str | None) -> None:
    content = text_of([{"type": "text", "text": part} for part in parts])
    assert [finding.cls for finding in find_secrets(content)] == ([cls] if cls else [])

"""The language of a short sentence, by its characters and function words. Pure."""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["en", "de", "es", "fr", "it", "pt", "ja", "zh"]
"""Languages of the conversations, as ISO 639-1 codes."""

CJK_CHARACTERS = "\u3040-\u30ff\u3400-\u9fff"
"""Kana and Han characters, as the inside of a character class."""

_FUNCTION_WORDS = {
    "en": "a about after all also an and are as at be before both but by can does each for from had has have he her "
    "his if in is it its more no not of on only or over she since so than that the their them they this to "
    "until up was were when where which while who will with without would",
    "de": "ab alle als am an auch auf aus bei bis dann das dass dem den der des die durch dürfen ein eine einem "
    "einen einer eines er es für gegen haben hat ihr ihre ihrem ihren ihrer im in ins ist kann kein keine "
    "keinen keiner man mehr mit muss nach nicht noch nur oder ohne sein seine seinem seinen seiner seit sich "
    "sie sind soll sowie um und unter vom von vor war wenn werden wie will wird wo zu zum zur zwischen über",
    "es": "a al ante como con cuando de del desde durante e el ella en entre era es esta está están fue ha han hasta "
    "la las le les lo los me muy más ni no o para pero por porque puede que se según ser si sin sobre solo son "
    "su sus también tiene tras u un una uno y ya",
    "fr": "après au aussi aux avant avec car ce ces cette chez comme d dans de depuis des du dès elle elles en entre "
    "est et eu il ils j l la le les leur leurs lui m mais n ne non on ont ou où par pas pendant plus pour qu "
    "quand que qui s sa sans se sera ses si son sont sous sur un une vers y à être",
    "it": "a ad ai al alla alle anche che ci col come con cui da dai dal dalla dalle dei del dell della delle di "
    "dopo due e ed era fa fino fra gli ha hanno i il in l la le lo ma nei nel nell nella no non né o per più "
    "prima può quando sarà se senza si solo sono su sua sue sul sulla suo suoi tra un una uno è",
    "pt": "a ao aos as até com como da das de dela dele depois desde do dos e ela ele em entre era foi há isso já "
    "lhe mais mas na nas nem no nos num numa não o os ou para pela pelas pelo pelos por quando que se sem ser "
    "seu seus sua suas são só também tem têm um uma às é",
}
_WORDS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_QUOTED = re.compile(r"[\"“„«‘].*?[\"”“»’]")
_MOST_FOREIGN_WORDS = 1
"""Function words of other languages that a sentence may hold, for names such as Los Angeles."""


def is_written_in(sentence: str, language: Language) -> bool:
    """Return whether a sentence is in one language, the one given; quoted titles do not count."""
    text = _QUOTED.sub(" ", sentence).casefold()
    if language in ("ja", "zh"):
        return _is_cjk(text) and bool(re.search("[\u3040-\u30ff]", text)) == (language == "ja")
    if _is_cjk(text):
        return False
    words = re.findall(r"[^\W\d_]+", text)
    own = _WORDS[language]
    counts = {name: sum(word in known for word in words) for name, known in _WORDS.items()}
    foreign = sum(word not in own and any(word in known for known in _WORDS.values()) for word in words)
    return counts[language] == max(counts.values()) and foreign <= _MOST_FOREIGN_WORDS


def _is_cjk(text: str) -> bool:
    """Return whether more characters are Kana and Han than half of the other letters, which may spell names."""
    count = len(re.findall(f"[{CJK_CHARACTERS}]", text))
    return 2 * count > len(re.findall(rf"[^\W\d_{CJK_CHARACTERS}]", text))

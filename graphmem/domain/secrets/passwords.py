"""Values told as a password, passphrase, passcode or PIN."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

from graphmem.domain.secrets.models import SECRET_CLASSES, Span

_LABEL = re.compile(
    r"(?:(?<=_)|(?<![^\W_]))(?:(?P<phrase>pass ?-?phrase|seed phrase|recovery phrase|mnemonic phrase"
    r"|phrase secrète|frase segreta)"
    r"|(?P<code>pin(?:[ \-]?(?:code|number|nummer))?|code (?:pin|secret|d'accès)|(?:door|gate|alarm|access|entry"
    r"|unlock|verification|one-time|safe|"
    r"lock|security|garage|keypad)[ _\-]?(?:code|combination)|zugangscode|türcode|geheimzahl|otp|cvv2?|cvc2?"
    r"|código (?:pin|secreto|de acceso)|"
    r"pass ?-?code)"
    r"|(?P<weak>clave(?: secreta| de acceso)?|parola|haslo|pass|pw|pwd|heslo|şifre)"
    r"|(?:pass ?-?word|passwd|passwort|kennwort|mot de passe|contraseña|contrasena|senha|palavra-passe"
    r"|parola d'ordine|wachtwoord|hasło|"
    r"lösenord|adgangskode|passord|salasana|şifrem|şifresi|jelszó|пароль|кодовое слово|κωδικός))"
    r"(?P<plural>s|wörter|es|n)?(?![^\W_])",
    re.IGNORECASE,
)
_CJK_LABEL = re.compile(
    r"(?:密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|كلمة المرور|كلمة السر|סיסמה)"
    r"[^!-~]{0,6}[:=]?\s?(?P<value>[!-~]{4,})"
)
_LABEL_FOLLOWERS = (
    r"(?:manager|managers|app|vault|policy|policies|field|reset|resets|hint|hints|generator|keeper|strength"
    r"|length|protection|protected|prompt|"
    r"screen|page|requirement|requirements|rotation|change|changes|recovery|expiry|expiration|rule|rules|problem"
    r"|problems|issue|issues|format|"
    r"and|but|because|or|then|und|aber|oder|et|mais|ou|y|pero|ma|if|when|that|which|about|review|reviews|has|have"
    r"|had|must|should|needs|need|"
    r"hasher|hashing|hash|cracker|cracking|list|attempts|attempt|less|free|based|holder|pad|terminal|entry|box"
    r"|input|storage)"
)
_IS_FORMS = (
    r"(?:is|was|are|were|will be|being|ist|war|lautet|lauten|sind|est|était|sont|es|era|son|é|è|sono|são|jest|är"
    r"|er|on|это|is now|has been|used to be|will be|"
    r"wurde auf|remains|equals|reads|heißt|hei?sst|sera|será|sarà)"
)
_CHANGED_TO = re.compile(
    r"(?:chang|updat|set|reset|mak|made|switch|geänder|gesetzt|änder|setz|chang\w|modifi|cambi|ustaw"
    r"|alter)\w{0,5}\b[^.!?\n]{0,40}$",
    re.IGNORECASE,
)
_GAP = rf"(?:[ ](?!{_LABEL_FOLLOWERS}\b|{_IS_FORMS}\b)[^\s.,;:!?=]{{1,30}}){{0,6}}?"
_ASSIGNMENT = re.compile(rf"[\"')\]]{{0,2}}{_GAP}[\"')\]]{{0,2}}[ ]{{0,2}}(?::=|=>|->|→|[:=](?![:/]))\s{{0,3}}")
_VERB_IS = re.compile(rf"[\"')]{{0,2}},?{_GAP},?[ ]{_IS_FORMS}\b[ ]?[:=]?\s{{1,3}}", re.IGNORECASE)
_CHANGED_TO_PREPOSITION = re.compile(rf"{_GAP}[ ](?:to|auf|en|a|à|in|per|na|as|als|comme|como|come)[ ]", re.IGNORECASE)
_POLISH_IS = re.compile(rf"{_GAP}[ ]to[ ]", re.IGNORECASE)
_ADJACENT_SEPARATOR = re.compile(r"[ ]?-[ ]|(?:'s)?[ ]{1,2}")
_FILLER = re.compile(
    r"(?:now|currently|actually|simply|just|still|called|named|set to|the word|the phrase|the number|the code"
    r"|probably|literally|always|"
    r"jetzt|aktuell|einfach|derzeit|maintenant|actuellement|ahora|actualmente|simplemente|adesso|semplicemente"
    r"|agora)[ ]+",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"([^\"\n]{1,100})\"|'([^'\n]{1,100})'|`([^`\n]{1,100})`")
_TOKEN = re.compile(r"\S{1,200}")
_SPACED_DIGITS = re.compile(r"\d(?:[ \-]\d){3,9}(?![\w])|\d{2,4}(?:[ \-]\d{2,4}){1,3}(?![\w])")
_UNIT_AFTER_NUMBER = re.compile(
    r"[ \-]{0,2}(?:characters?|chars?|letters?|digits?|symbols?|words?|bits?|bytes?|days?|times?|weeks?|months?"
    r"|years?|hours?|minutes?|attempts?|tries|"
    r"zeichen|stellen|ziffern|tage|monate|jahre|caract[eè]res?|chiffres|jours|mois|ans|caracteres|d[íi]gitos|días"
    r"|veces|meses|años|caratteri|cifre|"
    r"giorni|mm|cm|m|km|meters?|metres?|miles?|feet|ft|kg|euros?|dollars?|%|€|people|users?|sites?|websites"
    r"|accounts?|services)(?!\w)",
    re.IGNORECASE,
)
_NON_PASSWORD_WORDS = frozenset((files(__package__) / "no_password.txt").read_text(encoding="utf-8").split())
"""What follows "the password is" without being the password; names of password keepers among them."""
_FUNCTION_WORDS = re.compile(
    r"\b(?:an?|the|to|of|in|on|at|for|with|my|his|her|your|our|is|are|was|be|been|not|and|or|but|if|that|this|it"
    r"|too|very|by"
    r"|from|as|so)\b",
    re.IGNORECASE,
)
_CLAUSE_CONTINUATION = re.compile(
    r"[ ]+(?:for|on|at|and|but|so|please|in|since|because|everywhere|until|as|too|now|today|right|again|btw|by|if"
    r"|or|with|when|für|und|aber|bei|"
    r"pour|et|mais|y|pero|para|e|ma|per)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    rf"[\[\"']*\[?(?:{'|'.join(SECRET_CLASSES)})\]"
    rf"|\*{{2,}}(?!\w)|x{{3,}}\b|<[A-Za-z_ \-]{{1,30}}>|\.\.\.|_{{3,}}|\[redacted\]|•",
    re.IGNORECASE,
)
_EDGE_PUNCTUATION = ".,;:!?)]}>\"'"


def find_passwords(text: str) -> Iterator[Span]:
    """Yield what is told as the value of a password, passphrase, passcode or PIN, and passwords inside addresses."""
    for label in _LABEL.finditer(text):
        if span := _find_after_label(text, label):
            yield span
    for pattern in (_CJK_LABEL, _URL_PASSWORD):
        for match in pattern.finditer(text):
            if not _PLACEHOLDER.match(match["value"]):
                yield match.span("value")
    yield from _find_before_label(text)


def _find_after_label(text: str, label: re.Match[str]) -> Span | None:
    at = label.end()
    kind = "phrase" if label["phrase"] else "code" if label["code"] else "weak" if label["weak"] else "word"
    if label.group().lower() == "pass" and text[at : at + 1] not in ("=", ":"):
        return None
    if assigned := _ASSIGNMENT.match(text, at):
        return _value_at(text, assigned.end(), kind, plain=not label["plural"])
    if verbal := _VERB_IS.match(text, at) or (
        _POLISH_IS.match(text, at) if label.group().lower() in ("hasło", "haslo") else None
    ):
        return _value_at(text, verbal.end(), kind, plain=kind != "weak" and not label["plural"], sentence=True)
    to = _CHANGED_TO_PREPOSITION.match(text, at)
    if to and _CHANGED_TO.search(text, max(0, label.start() - 60), label.start()):
        return _value_at(text, to.end(), kind, plain=kind != "weak", sentence=True)
    if (adjacent := _ADJACENT_SEPARATOR.match(text, at)) and (kind != "weak" or label.group().lower() in ("pw", "pwd")):
        return _value_at(text, adjacent.end(), kind, plain=False, adjacent=label.group())
    return None


def _value_at(text: str, at: int, kind: str, *, plain: bool, sentence: bool = False, adjacent: str = "") -> Span | None:
    while filler := _FILLER.match(text, at):
        at = filler.end()
    if quoted := _QUOTED.match(text, at):
        return (
            None
            if _PLACEHOLDER.match(text, quoted.start() + 1)
            else _non_blank_span(text, quoted.start() + 1, quoted.end() - 1)
        )
    token = _TOKEN.match(text, at)
    if token is None or _PLACEHOLDER.match(text, at):
        return None
    word = token.group().rstrip(_EDGE_PUNCTUATION)
    lowered = word.lower()
    end = at + len(word)
    if kind == "phrase" and plain and (phrase := _phrase_at(text, at)):
        return phrase
    if not word or lowered in _NON_PASSWORD_WORDS:
        return None
    if kind == "code" or word.isdigit():
        return _digits_at(text, at, end, kind, adjacent)
    if "://" in word or (adjacent and not re.match(r"(?=.*\d)[\w!#$%&@+=*?]", word)):
        return None
    if _is_strong(word):
        return None if _UNIT_AFTER_NUMBER.match(text, end) and word.isdigit() else (at, end)
    if adjacent or not plain or _is_descriptive(word):
        return None
    return _plain_value_at(text, at, end, sentence)


def _phrase_at(text: str, at: int) -> Span | None:
    """Return three or more words in a row without any grammar, as passphrases are."""
    rest = text[at : at + 300]
    clause = re.split(r"[.!?;,\n]", rest, maxsplit=1)[0].rstrip()
    return (at, at + len(clause)) if len(clause.split()) >= 3 and not _FUNCTION_WORDS.search(clause) else None


def _digits_at(text: str, at: int, end: int, kind: str, adjacent: str) -> Span | None:
    """Return the digits of a passcode; a lower-case `pin 1024` without "is" is rather a pin of something."""
    spaced = _SPACED_DIGITS.match(text, at)
    if spaced:
        end = spaced.end()
    word = text[at:end]
    if kind == "code" and not re.fullmatch(r"[A-Za-z]{0,3}\d[\d \-#*A-Za-z]{2,9}", word):
        return None
    if len(re.sub(r"\D", "", word)) < (3 if kind == "code" else 4) or _UNIT_AFTER_NUMBER.match(text, end):
        return None
    return None if adjacent in ("pin", "Pin", "pins") else (at, end)


def _plain_value_at(text: str, at: int, end: int, sentence: bool) -> Span | None:
    rest = re.split(r"[.!?;,\n]", text[end : end + 200], maxsplit=1)[0].rstrip()
    following = rest.split()
    if not following or not sentence or _CLAUSE_CONTINUATION.match(text, end) or text[end : end + 1] in (",", ")", '"'):
        return at, end
    if any(word.strip(_EDGE_PUNCTUATION).lower() in _NON_PASSWORD_WORDS for word in following):
        return None
    return at, end + len(rest)


def _is_descriptive(word: str) -> bool:
    """Tell whether a plain word rather says how a password is than what it is."""
    return len(word) < 3 or "'" in word or (word.islower() and word.endswith(("ing", "lich", "able")))


def _is_strong(word: str) -> bool:
    if re.search(r"\d", word):
        return len(word) >= 4
    if re.search(r"[^\w'\-./,]", word) and len(word) >= 4:
        return True
    return re.search(r"[a-z][A-Z]|[a-z]_[a-z]", word) is not None


def _non_blank_span(text: str, start: int, end: int) -> Span | None:
    return (start, end) if text[start:end].strip() else None


_URL_PASSWORD = re.compile(
    r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s:/@]{0,60}:(?P<value>[^\s/@]{1,100}@[\w.\-]{1,100})", re.IGNORECASE
)
_POSSESSIVE = (
    r"(?:my|his|her|their|the|our|a|mein|meine|sein|ihr|das|mon|le|son|mi|su|la|il|mia|minha|user's|[A-Z]\w{1,20}'s)"
)
_PASSWORD_NOUNS = (
    r"(?:pass ?-?words?|pass ?-?phrase|pass ?-?code|passwort|kennwort|mot de passe|contraseña|senha|wachtwoord"
    r"|pin(?: code)?)"
)
_VALUE_BEFORE_LABEL = re.compile(
    rf"(?P<value>\"[^\"\n]{{3,60}}\"|'[^'\n]{{3,60}}'|\S{{3,60}})[ ](?:is|was|ist|war|est|es|è"
    rf"|é)[ ](?:{_POSSESSIVE}[ ]){{1,2}}(?:[\w'\-]{{1,20}}[ ]){{0,2}}?{_PASSWORD_NOUNS}"
    r"(?=[.!?,;)\"]|\s*$|[ ](?:for|on|at|to|für|pour|para|per)\b)",
    re.IGNORECASE,
)
_USED_AS = re.compile(
    rf"(?P<use>\b(?:us(?:es?|ed|ing)|set|sets|chose|choose|picked|has|nutzt|verwendet|benutze|utilise|usa|uso)[ ])?"
    rf"(?P<value>\"[^\"\n]{{3,60}}\"|'[^'\n]{{3,60}}'|\S{{3,60}})[ ](?:as|als|comme|como"
    rf"|come)[ ](?:{_POSSESSIVE}[ ])?(?:[\w'\-]{{1,20}}[ ]){{0,2}}?{_PASSWORD_NOUNS}(?!\w)",
    re.IGNORECASE,
)


def _find_before_label(text: str) -> Iterator[Span]:
    for pattern in (_VALUE_BEFORE_LABEL, _USED_AS):
        for match in pattern.finditer(text):
            word = match["value"].strip(_EDGE_PUNCTUATION + "([{<").lower()
            plain = pattern is _VALUE_BEFORE_LABEL or match["use"] is not None
            if _PLACEHOLDER.match(match["value"]) or word in _NON_PASSWORD_WORDS or len(word) < 3:
                continue
            if (
                _is_strong(match["value"].strip(_EDGE_PUNCTUATION))
                or match["value"][0] in "\"'"
                or (plain and not _is_descriptive(match["value"].strip(_EDGE_PUNCTUATION)))
            ):
                yield match.span("value")

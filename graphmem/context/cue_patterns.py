"""The words that context is read from where no model reads: one pattern an idea, in the languages most asked for."""

# ruff: noqa: E501 - patterns and word lists are read by the line

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from graphmem.domain.context_models import PreferenceType

PAST_SESSION_CUES = re.compile(
    r"\b(?:last time|(?:our|the|my|a|that) (?:last|previous|earlier|prior|past) (?:\w+ ){0,2}?(?:chat|talk|conversation|discussion|session|"
    r"meeting|thread|e-?mail|call|message)s?|as (?:we )?(?:discussed|talked about|agreed|mentioned)|(?:we|i|you) (?:\w+ )?(?:discussed|talked about|"
    r"spoke about|agreed on)|(?:did|have|had) (?:we|i|you) (?:\w+ )?(?:discuss|talk about|say|said|tell|told|mention|suggest|recommend)\w*|"
    r"you (?:\w+ )?(?:said|told me|suggested|recommended|advised|mentioned|explained|proposed)|i (?:\w+ )?(?:told you|mentioned)|"
    r"(?:do you )?remember (?:when|what|how|that|the|our|my)|earlier you|previously|the other day|back when|where (?:did )?we (?:left|leave) off|"
    r"pick up where|(?:same|this) (?:problem|issue|error) (?:as before|again)|letztes mal|letzte[sn] (?:gespräch|unterhaltung|mail)|"
    r"(?:wie|haben wir|hatten wir)\b.{0,20}besprochen|worüber wir|du hast (?:mir )?(?:\w+ )?(?:gesagt|empfohlen|geraten)|neulich|"
    r"la última vez|(?:nuestra )?(?:última|anterior) (?:conversación|charla)|como (?:hablamos|comentamos|discutimos)|me (?:dijiste|recomendaste)|"
    r"la dernière fois|(?:notre )?(?:dernière|précédente) (?:conversation|discussion)|comme (?:convenu|discuté)|tu m'as (?:dit|conseillé))\b",
    re.IGNORECASE,
)
_ABANDONED_THING = (
    r"(?P<left>[^\W_][\w+#.'&-]*(?: (?!to\b|and\b|but\b|so\b|which\b|because\b|any\b|a few\b)[\w+#'&-]+){0,3}?)"
)
_ABANDONED_END = r"(?=\s*(?:[.,;:!?)]|$|\b(?:to|and|but|so|any ?more|now|last|this|since|because|for|which|in \d{4}|und|zu|nach|jetzt|y|a|et|à|vers)\b))"
ABANDONED_PATTERNS = [
    re.compile(pattern + _ABANDONED_END, re.IGNORECASE)
    for pattern in (
        rf"\b(?:switch|mov|migrat|chang|convert|transition)(?:e|ed|ing)?\b[^.!?]{{0,25}}?\b(?:away )?from (?:using )?(?:the |my )?{_ABANDONED_THING}",
        rf"\bno longer (?:\w+ )??(?:in |at |for |with |on |the |a |an |my )*{_ABANDONED_THING}",
        rf"\b(?:don't|do not|doesn't|won't|not|never) (?:\w+ )?(?:in |at |for |with |on |the |a |an |my )*{_ABANDONED_THING} any ?more",
        rf"\b(?:stopped|quit|gave up|given up|dropped|ditched|abandoned) (?:\w+ing )?(?:in |at |for |with |on |the |a |an |my )*{_ABANDONED_THING}",
        rf"\b(?:instead of|rather than) (?:using )?(?:the |a |an |my )?{_ABANDONED_THING}",
        rf"\b(?:nicht mehr|kein(?:e[nrsm]?)?) (?:in |bei |mit |den |die |das )?{_ABANDONED_THING} mehr",
        rf"\bnicht mehr (?:in |bei |mit |den |die |das )?{_ABANDONED_THING}",
        rf"\b(?:von) {_ABANDONED_THING} (?:auf|zu) \w+ (?:umgestiegen|gewechselt)",
        rf"\b(?:en lugar de|en vez de|dejé (?:de )?(?:\w+r )?|ya no (?:\w+ )(?:en |con )?){_ABANDONED_THING}",
        rf"\b(?:au lieu de|plutôt que (?:de )?|arrêté (?:de )?){_ABANDONED_THING}",
    )
]
CHANGE_CUES = re.compile(
    r"\b(?:this time|instead|for once|for a change|from now on|actually|rather|(?:want|like|going) to try|let me try|switch(?:ed|ing)? to|"
    r"changed my mind|these days|nowadays|no longer|any ?more|now (?:use|using|prefer|want|on)|(?:prefer|want|use|using) \w+ now|today i(?:'d| would)|"
    r"diesmal|stattdessen|lieber|ab jetzt|ab sofort|nicht mehr|ausnahmsweise|esta vez|en lugar|en vez|ya no|ahora (?:prefiero|quiero|uso)|"
    r"cette fois|plutôt|à la place|désormais|au lieu)\b",
    re.IGNORECASE,
)


def _compile_cues(words: Mapping[str, str]) -> dict[str, list[re.Pattern[str]]]:
    return {
        name: [re.compile(rf"\b{re.escape(cue)}s?\b", re.IGNORECASE) for cue in cues.split("|")]
        for name, cues in words.items()
    }


STYLE_CUES = _compile_cues(
    {
        "formal": "please|could you|would you mind",
        "casual": "hey|gonna|wanna|stuff",
        "technical": "ROI|APR|amortization|yield",
        "simple": "explain|what is|how does|why",
    }
)
VISUAL_CUES = _compile_cues(
    {
        "chart": "chart|graph|plot|diagram|visualize|visualise|pie|trend line",
        "table": "table|spreadsheet|column|rows",
        "list": "bullet|bullet point|list|step",
        "text": "in words|no chart|without chart|plain text",
    }
)
DETAIL_CUES = _compile_cues(
    {
        "brief": "brief|briefly|short|quick|quickly|in a nutshell|tldr|tl;dr|summarize|summarise|summary|concise|one sentence|just the answer",
        "detailed": "in detail|detailed|step by step|in depth|thorough|thoroughly|comprehensive|elaborate|walk me through|everything about|break down|breakdown",
    }
)

_LANGUAGE_NAMES = {
    "English": "english|englisch|inglés|anglais|inglese|inglês",
    "Spanish": "spanish|español|spanisch|espagnol|castellano|spagnolo|espanhol",
    "German": "german|deutsch|alemán|allemand|tedesco|alemão",
    "French": "french|français|französisch|francés|francese|francês",
    "Italian": "italian|italiano|italienisch|italien",
    "Portuguese": "portuguese|português|portugiesisch|portugués|portugais|portoghese",
    "Dutch": "dutch|nederlands|niederländisch|holandés|néerlandais",
    "Polish": "polish|polski|polnisch|polaco|polonais",
    "Turkish": "turkish|türkçe|türkisch|turco|turc",
    "Russian": "russian|русски|russisch|ruso|russe",
    "Ukrainian": "ukrainian|українськ\\w+|ukrainisch",
    "Arabic": "arabic|العربية|arabisch|árabe|arabe",
    "Chinese": "chinese|mandarin|中文|chinesisch|chino|chinois",
    "Japanese": "japanese|日本語|japanisch|japonés|japonais",
    "Korean": "korean|한국어|koreanisch|coreano|coréen",
    "Hindi": "hindi|हिन्दी|हिंदी",
}
_ANSWER_VERBS = (
    r"(?:answer|reply|respond|write|speak|talk|communicate|continue|switch(?: over)?|explain|antworte|antworten|schreib|schreibe|sprich|rede|"
    r"responde|respóndeme|contesta|escribe|habla|háblame|réponds|répondez|écris|parle|rispondi|scrivi|parla)"
)
LANGUAGE_REQUESTS = [
    (
        name,
        re.compile(
            rf"\b{_ANSWER_VERBS}\b[^.!?\n]{{0,40}}?\b(?:in|to|auf|en|em|in lingua|на)? ?(?:{words})\b", re.IGNORECASE
        ),
    )
    for name, words in _LANGUAGE_NAMES.items()
]
STATED_PREFERENCES: list[tuple[PreferenceType, dict[str, Any], re.Pattern[str]]] = [
    (kind, value, re.compile(words, re.IGNORECASE))
    for kind, value, words in (
        (
            PreferenceType.COMMUNICATION,
            {"style": "formal"},
            r"\b(?:more formal(?:ly)?|(?:be|stay|keep it|remain) formal|(?:a |in )?formal (?:tone|style|language|manner)|too (?:casual|informal)|"
            r"förmlich(?:er)?|más formal|tono formal|plus formel)\b",
        ),
        (
            PreferenceType.COMMUNICATION,
            {"style": "casual"},
            r"\b(?:more (?:casual|informal|relaxed)(?:ly)?|(?:be|stay|keep it) (?:casual|informal)|(?:casual|informal|relaxed|friendly) (?:tone|style|language|manner)|"
            r"too (?:formal|stiff)|less formal|lockerer|weniger förmlich|más informal|tono (?:casual|informal)|moins formel)\b",
        ),
        (
            PreferenceType.COMMUNICATION,
            {"style": "simple"},
            r"\b(?:(?:in )?(?:simple|plain|simpler|plainer) (?:terms|words|language|english)|too (?:technical|complicated|complex)|(?:less|no|without) jargon|"
            r"explain (?:it )?(?:like|as if) i(?:'m| am)|einfacher)\b",
        ),
        (
            PreferenceType.COMMUNICATION,
            {"style": "technical"},
            r"\b(?:more technical|be technical|(?:the )?technical (?:terms|details|version)|too (?:simple|simplistic|basic))\b",
        ),
        (
            PreferenceType.DETAIL_LEVEL,
            {"level": "brief"},
            r"\b(?:(?:more|be|stay|keep it|keep (?:your |the )?(?:answers|replies) ) ?(?:very )?(?:concise|brief|short)|(?:shorter|briefer|concise|short|brief) (?:answers?|repl(?:y|ies)|responses?)|"
            r"too (?:long|wordy|verbose|much (?:information|detail|text))|less (?:detail|text|verbose|wordy)|get to the point|kürzer|zu lang|más (?:breve|corto|conciso)|demasiado largo|plus (?:court|bref|concis)|trop long)\b",
        ),
        (
            PreferenceType.DETAIL_LEVEL,
            {"level": "detailed"},
            r"\b(?:more (?:detail|details|detailed|depth|thorough|information)|(?:longer|detailed|in-depth|thorough) (?:answers?|repl(?:y|ies)|responses?|explanations?)|"
            r"too (?:short|brief|vague|superficial)|not enough detail|ausführlicher|zu kurz|más detall(?:e|es|ado)|plus de détails?|trop court)\b",
        ),
        (
            PreferenceType.VISUALIZATION,
            {"format": "chart"},
            r"\b(?:(?:prefer|like|want|use|show me|give me|more|always)\b[^.!?\n]{0,15}\b(?:charts?|graphs?|plots?|diagrams?))\b",
        ),
        (
            PreferenceType.VISUALIZATION,
            {"format": "table"},
            r"\b(?:(?:prefer|like|want|use|show me|give me|more|always)\b[^.!?\n]{0,15}\btables?)\b",
        ),
        (
            PreferenceType.VISUALIZATION,
            {"format": "list"},
            r"\b(?:(?:prefer|like|want|use|give me|more|always)\b[^.!?\n]{0,15}\b(?:bullet points?|bullets|numbered lists?))\b",
        ),
    )
]

ISSUE_PATTERNS = {
    name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for name, words in {
        "too_long": r"too (?:long|wordy|verbose|much (?:information|detail|text))|shorter|more concise|get to the point|zu lang|kürzer|demasiado largo|trop long",
        "too_short": r"too (?:short|brief|vague|superficial)|more details?|not enough detail|zu kurz|ausführlicher|trop court",
        "tone": r"too (?:formal|casual|informal|stiff)|rude|tone|more (?:formal|casual)|condescending|unfriendly|tonfall|tono",
        "too_technical": r"too (?:technical|complicated|complex)|jargon|(?:do not|don't|didn't) understand|confusing|verstehe? (?:ich )?nicht",
        "too_simple": r"too (?:simple|simplistic|basic)|more technical",
        "language": r"(?:wrong|other|different) language|in (?:english|spanish|german|french|italian|portuguese|dutch)|auf (?:deutsch|englisch)|en español|en français",
        "incorrect": r"wrong|incorrect|not (?:true|right|correct)|false|mistakes?|inaccurate|made up|falsch|stimmt nicht|incorrecto|faux",
        "outdated": r"outdated|out of date|old (?:data|information|figures)|no longer|not any ?more|veraltet",
        "irrelevant": r"irrelevant|off[- ]topic|not what i (?:asked|meant|wanted)|(?:did not|didn't) answer|besides? the point|unrelated|thema verfehlt",
        "repetitive": r"repeat(?:ed|ing|s|itive)|already (?:said|told|tried|know)|again and again|same (?:answer|thing)",
        "presentation": r"chart|graph|table|bullets?|format(?:ting)?|layout|hard to read",
    }.items()
}

_AMOUNT_CONTEXTS = {
    "budget": "budget|limit|allowance|haushalt|presupuesto",
    "income": r"income|salary|earn\w*|paycheck|wages?|gehalt|verdien\w*|salaire|salario|sueldo|nómina",
    "saving": r"sav(?:e|es|ed|ing|ings)|deposit\w*|down payment|emergency fund|spar\w+|épargn\w+|ahorr\w+",
    "debt": r"debts?|loans?|mortgage|owe[sd]?|borrow\w*|kredit\w*|schuld\w*|hypothek|prêt|dette|deuda|préstamo|hipoteca",
    "investment": r"invest\w*|stocks?|shares|fund|etf|portfolio|aktien|acciones|inversi\w+",
    "bill": r"bills?|rent|subscription|invoice|insurance|utilit\w+|miete|rechnung|versicherung|loyer|facture|alquiler|factura",
    "price": r"price[sd]?|costs?|costing|worth|quote[sd]?|kostet|preis|coûte|prix|cuesta|precio",
    "spending": r"spen[dt]\w*|paid|pay(?:s|ing)?|bought|buy(?:s|ing)?|purchase\w*|expens\w+|ausgegeben|ausgab\w+|bezahl\w*|gekauft|dépens\w+|gast\w+|compr\w+",
}
AMOUNT_CONTEXT_PATTERNS = [
    (name, re.compile(rf"\b(?:{words})\b", re.IGNORECASE)) for name, words in _AMOUNT_CONTEXTS.items()
]

CONTRACTIONS = {
    "cannot": "can't", "can not": "can't", "will not": "won't", "shall not": "shan't", "do not": "don't", "does not": "doesn't",
    "did not": "didn't", "is not": "isn't", "are not": "aren't", "was not": "wasn't", "were not": "weren't", "have not": "haven't",
    "has not": "hasn't", "had not": "hadn't", "would not": "wouldn't", "should not": "shouldn't", "could not": "couldn't",
    "you are": "you're", "you have": "you've", "you will": "you'll", "we are": "we're", "we have": "we've", "we will": "we'll",
    "they are": "they're", "I am": "I'm", "I have": "I've", "I will": "I'll", "it is": "it's", "that is": "that's", "let us": "let's",
}  # fmt: skip
EXPANSIONS = {short: long for long, short in CONTRACTIONS.items() if long != "can not"} | {
    "gonna": "going to", "wanna": "want to", "gotta": "have to", "kinda": "somewhat",
}  # fmt: skip
GLOSSARY = {
    "ROI": "what an investment earns for its cost",
    "APR": "the yearly cost of borrowing",
    "APY": "the yearly interest earned",
    "ETF": "a fund traded like a share",
    "amortization": "paying off a loan bit by bit",
    "yield": "the income from an investment",
    "liquidity": "how quickly something turns into cash",
    "equity": "the part that is really owned",
}

NAME_PREDICATES = frozenset(
    {
        "HAS_NAME",
        "IS_NAMED",
        "NAMED",
        "NAME",
        "NAME_IS",
        "IS_CALLED",
        "CALLED",
        "GOES_BY",
        "PREFERRED_NAME",
        "FIRST_NAME",
    }
)
NAME_STATEMENT = re.compile(
    r"\b(?:name is|is named|is called|goes by|prefers to be called|likes to be called|(?:wants|asked) to be called) ([^\W\d_][\w'’-]*)"
)
SOLUTION_CUES = re.compile(
    r"\b(?:fix(?:ed|es)?|solv(?:ed|es)|solution|resolved?|workaround|helped|worked|restart(?:ed|ing)?|reinstall(?:ed|ing)?|replaced|reset)\b",
    re.IGNORECASE,
)
TRIED_CUES = re.compile(
    r"\b(?:tried|already|did(?:n't| not) (?:help|work|fix|solve)|no effect|in vain|fixed|solved|resolved|worked|helped)\b",
    re.IGNORECASE,
)
PERSONAL_TYPES = frozenset({"Person", "Pet", "Animal", "Dog", "Cat", "Family", "Child"})
POINTER_KEYS = (
    "pointer",
    "pointers",
    "kb",
    "kb_article",
    "article",
    "url",
    "link",
    "document",
    "ticket",
    "ticket_id",
    "reference",
    "references",
)

"""Temporary states: balances and transactions of the moment, which never become memories."""

from __future__ import annotations

import re

from graphmem.text.folding import fold

_AMOUNT = (
    r"(?:[$€£¥₹][ ]?-?\d[\d.,' ]{0,14}[kKmM]?|-?\d[\d.,' ]{0,14}[ ]?(?:[$€£¥₹]|(?:k[ ]?)?(?:dollars?|bucks|euros?"
    r"|pounds?|usd|eur|gbp|chf|francs?|franken|pesos?|"
    r"reais|zł|kr)\b)|(?:usd|eur|gbp|chf)[ ]?\d[\d.,']{0,14})"
)
_NOW_WORDS = (
    r"(?:right now|at the moment|currently|at present|as of (?:now|today|this morning)|today|left|remaining"
    r"|available|this morning|tonight|"
    r"gerade|im moment|aktuell|derzeit|momentan|heute|en ce moment|actuellement|aujourd'hui|ahora|actualmente"
    r"|en este momento|hoy|adesso|"
    r"attualmente|oggi|agora|atualmente|hoje)"
)
_RECENT_WORDS = (
    r"(?:yesterday|today|tonight|last night|this (?:morning|afternoon|evening)|just now|earlier today|a (?:moment"
    r"|minute) ago|"
    r"(?:an?|\d+|a few|two|three) (?:minutes?|hours?|days?) ago|(?:on|last|this) (?:mon|tues|wednes|thurs|fri"
    r"|satur|sun)day|the other day|"
    r"gestern|heute|vorhin|heute (?:morgen|früh)|gerade eben|vorgestern|hier|aujourd'hui|ce matin|avant-hier|ayer"
    r"|hoy|esta mañana|anoche|anteayer|"
    r"ieri|oggi|stamattina|stasera|ontem|hoje)"
)
_LASTING_CUES = re.compile(
    r"\b(?:every|each|per|an? (?:day|week|month|year|quarter|time)|daily|weekly|monthly|yearly|annual(?:ly)?"
    r"|quarterly|usually|typically|always|normally|"
    r"generally|often|regularly|recurring|habitually|never|tends?|budgets?|goals?|targets?|minimum|maximum"
    r"|average|limit|threshold|wants?|plans?|hopes?|"
    r"aims?|prefers?|would like|intends?|should|alerts?|if|when(?:ever)?|below|above|under|at least|down payment"
    r"|house|home|apartment|condo|flat|car|boat|"
    r"wedding|jede[nrsm]?|pro|immer|monatlich|wöchentlich|täglich|jährlich|möchte|will|ziel|mindestens"
    r"|durchschnittlich|wenn|"
    r"chaque|par|tous les|toutes les|toujours|mensuel\w{0,3}|objectif|veut|souhaite|au moins|si|cada|por"
    r"|todos los|todas las|siempre|mensual\w{0,5}|"
    r"objetivo|meta|quiere|al menos|ogni|al mese|all'anno|sempre|mensil\w{1,4}|obiettivo|vuole|almeno|todo mês|quer)\b",
    re.IGNORECASE,
)
_BALANCE = re.compile(
    r"\b(?:balances?|kontostand|guthaben|saldo|solde)\b(?![ ]?(?:sheet|transfer"
    r"|of power))(?:[^.!?\d$€£]{0,50}?)(?:\b(?:is|was|are|stands? at|sits? at|shows?|now|at|"
    rf"ist|beträgt|liegt bei|steht bei|est de|est|es de|es|era|é de|è di|è|é|jest)|[:=])[ ]?(?:about |around "
    rf"|only |just |etwa |nur |de |di )?(?:{_AMOUNT}|-?\d[\d.,]{{2,12}}(?![\w%]))"
    rf"|{_AMOUNT}[ ](?:is|ist|est|es|è)[ ](?:my|the|his|her|their|mein|mon|mi"
    rf"|il mio)[ ](?:\w{{1,15}}[ ]){{0,3}}(?:balance|kontostand|saldo|solde)\b",
    re.IGNORECASE,
)
_CURRENT_AMOUNT = re.compile(
    rf"\b(?:has|have|had|holds?|got|is at|there(?:'s| is| are)|hat|habe|haben|a|ai|il y a|avons|tiene|tengo|hay"
    rf"|tenemos|ho|ha|c'è|ci sono|tem|tenho|i'm down to|down to)\b"
    rf"[^.!?\d$€£]{{0,40}}{_AMOUNT}[^.!?]{{0,50}}?\b{_NOW_WORDS}\b"
    rf"|\b{_NOW_WORDS}\b[^.!?\d$€£]{{0,30}}\b(?:has|have|holds?|got|hat|habe|ai|tiene|tengo|ho"
    rf"|ha)\b[^.!?\d$€£]{{0,30}}{_AMOUNT}"
    rf"|\b(?:checking|current|bank|giro)[ ]?(?:account)?\b[^.!?\d$€£]{{0,15}}\b(?:has|holds|contains|is at|shows"
    rf"|is down to)\b[^.!?\d$€£]{{0,15}}{_AMOUNT}"
    rf"|\b(?:has|have|got)\b[ ]{_AMOUNT}[ ]in[ ](?:his|her|my|their|the)[ ](?:checking|current|bank)[ ]account\b"
    rf"|\boverdrawn\b|\bkonto ist überzogen\b|\bà découvert\b",
    re.IGNORECASE,
)
_TRANSACTION_VERBS = (
    r"(?:spent|paid|bought|purchased|transferred|withdrew|deposited|was charged|got charged|were charged|received"
    r"|sent|wired|venmoed|got paid|blew|dropped|"
    r"ausgegeben|bezahlt|gekauft|überwiesen|abgehoben|dépensé|payé|acheté|viré|retiré|gasté|gastó|pagué|pagó"
    r"|compré|compró|transferí|gastado|pagado|"
    r"speso|pagato|comprato|trasferito|prelevato|gastei|paguei|comprei)"
)
_TRANSACTION = re.compile(
    rf"\b{_TRANSACTION_VERBS}\b[^.!?]{{0,60}}?{_AMOUNT}[^!?\n]{{0,60}}?\b{_RECENT_WORDS}\b"
    rf"|\b{_RECENT_WORDS}\b[^.!?]{{0,60}}?\b{_TRANSACTION_VERBS}\b[^.!?]{{0,40}}?{_AMOUNT}"
    rf"|\b{_RECENT_WORDS}\b[^.!?]{{0,40}}?{_AMOUNT}[^.!?]{{0,60}}?\b{_TRANSACTION_VERBS}\b"
    rf"|{_AMOUNT}[^.!?]{{0,50}}?\b{_TRANSACTION_VERBS}\b[^.!?]{{0,30}}?\b{_RECENT_WORDS}\b"
    rf"|\b{_TRANSACTION_VERBS}\b[^.!?\d$€£]{{0,30}}\b{_RECENT_WORDS}\b[^.!?]{{0,40}}?{_AMOUNT}"
    rf"|\b(?:pending|latest|last|most recent|recent)[ ](?:charges?|transactions?|purchases?|payments?|deposits?"
    rf"|withdrawals?|transfers?)\b[^.!?\d$€£]{{0,40}}{_AMOUNT}"
    rf"|\b(?:paycheck|salary|refund|deposit|payment|charge|transfer|gehalt|salaire|nómina"
    rf"|stipendio)\b[^.!?]{{0,40}}?{_AMOUNT}?[^.!?]{{0,20}}?"
    rf"\b(?:just|has just)[ ](?:hit|arrived|cleared|posted|landed|came in|went through)\b"
    rf"|\bjust[ ](?:spent|paid|bought|got paid|withdrew|transferred|received|deposited)\b[^.!?]{{0,40}}?{_AMOUNT}",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_])|\n+")


def is_temporary_state(text: str) -> bool:
    """Tell whether a sentence of `text` states a current balance or a recent transaction, not a budget or an income."""
    return any(_is_temporary_sentence(sentence) for sentence in _SENTENCE.split(fold(text).text))


def _is_temporary_sentence(sentence: str) -> bool:
    if _LASTING_CUES.search(sentence):
        return False
    return any(pattern.search(sentence) for pattern in (_BALANCE, _CURRENT_AMOUNT, _TRANSACTION))

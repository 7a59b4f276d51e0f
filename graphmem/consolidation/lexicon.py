"""Words that carry more than their meaning: months, numbers, negations, roles and what stands between them."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _number_words(*lines: str) -> dict[str, int]:
    return {name: number for line in lines for number, name in enumerate(line.split(), 1)}


MONTHS = _number_words(
    "january february march april may june july august september october november december",
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
AMBIGUOUS_MONTHS = _words("may march mar mars jan mai")
"""Names of months that are other words when they begin with a small letter."""

WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")

NUMBER_WORDS = {
    word: str(number)
    for word, number in _number_words(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty"
    ).items()
    if word != "one"
} | {"thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "thousand": "1000", "million": "1000000"}
"""Number words in digits; "one" is more often a pronoun."""

NEGATIONS = _words(
    "not no never without none nobody nothing cannot nor neither anymore nicht kein keine keinen nie ohne pas jamais "
    "sans nunca jamás sin não nem"
)
NEGATIVE_STANCE = _words(
    "dislike dislikes hate hates detest detests avoid avoids stopped quit quits former formerly longer refuses refuse "
    "lost cancelled canceled ended"
)
POSITIVE_STANCE = _words("like likes love loves enjoy enjoys prefer prefers want wants")

DETERMINERS = _words("the my his her their our your its a an")
PRONOUNS = _words(
    "i he she it they we you this that these those there here one someone everyone nobody user users who what when "
    "where while since after before in on at for to from with as and but also if because during every each some any "
    "all most both not no never has is was are does did do have had were will"
)
"""Words that begin a sentence with a capital and are no names."""

FILLER_WORDS = DETERMINERS | PRONOUNS | _words("of by or be been being so very than then too just into out up")
AUXILIARIES = _words("is was has had will can could would should does did may might must became went got")

PERSON_ROLES = _words(
    "brother sister mother father mum mom dad son daughter wife husband partner girlfriend boyfriend uncle aunt cousin "
    "nephew niece grandmother grandfather grandma grandpa friend colleague coworker boss manager neighbour neighbor "
    "teacher doctor dentist lawyer plumber landlord roommate flatmate coach student client customer employee cat dog "
    "bruder schwester mutter vater sohn tochter chef kollege freund freundin nachbar"
)
"""What people (and pets) are to somebody; two of them tell two people of one name apart."""

TITLES = _words("mr mrs ms miss dr prof sir herr frau mme mlle señor señora")
GENERIC_NAME_WORDS = _words(
    "inc corp corporation co company ltd llc gmbh ag sa plc group the city university institute foundation org project "
    "team app service"
)
"""Words that add nothing to the name of a thing."""

"""A user with several months of history, for the pictures in the documentation and the checks of every view."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import ExplorerUser

PEOPLE_AND_PLACES = {
    "Lila": "Person", "Tomek": "Person", "Sana": "Person", "Nuru": "Animal", "Ghent": "Place", "Bruges": "Place",
    "Antwerp": "Place", "Halyard Studio": "Organization", "Fennel Choir": "Organization", "Clarinet": "Instrument",
    "Cargo bike": "Thing", "Marathon of Ghent": "Event", "Harbour museum": "Organization", "Reed workshop": "Event",
}  # fmt: skip
"""The entities of the gallery and their types."""

FACTS = [
    ("Lila lives in Bruges", "Lila", "LIVES_IN", "Bruges", "2022-02-01", 0.9, True),
    ("Lila lives in Ghent", "Lila", "LIVES_IN", "Ghent", "2024-09-27", 0.9, True),
    ("Lila works at Halyard Studio as an illustrator", "Lila", "WORKS_AT", "Halyard Studio", "2023-05-15", 0.85, False),
    ("Lila is married to Tomek", "Lila", "MARRIED_TO", "Tomek", "2021-06-19", 0.9, False),
    ("Sana is Lila's colleague", "Sana", "COLLEAGUE_OF", "Lila", "2023-06-01", 0.6, False),
    ("Sana works at Halyard Studio", "Sana", "WORKS_AT", "Halyard Studio", "2020-01-07", 0.5, False),
    ("Nuru is the dog of Lila and Tomek", "Lila", "HAS_DOG", "Nuru", "2023-11-02", 0.7, False),
    ("Lila plays the clarinet", "Lila", "PLAYS", "Clarinet", None, 0.6, False),
    ("Lila sings in the Fennel Choir", "Lila", "SINGS_IN", "Fennel Choir", "2024-10-08", 0.5, False),
    ("Tomek works at the Harbour museum in Antwerp", "Tomek", "WORKS_AT", "Harbour museum", "2019-03-01", 0.5, False),
    ("The Harbour museum is in Antwerp", "Harbour museum", "LOCATED_IN", "Antwerp", None, 0.3, False),
    ("Halyard Studio is in Ghent", "Halyard Studio", "LOCATED_IN", "Ghent", None, 0.3, False),
    ("Lila rides a cargo bike to work", "Lila", "RIDES", "Cargo bike", "2025-01-15", 0.4, False),
    ("Tomek trains for the marathon of Ghent", "Tomek", "TRAINS_FOR", "Marathon of Ghent", "2025-08-01", 0.5, False),
    ("Lila booked a workshop on making reeds", "Lila", "BOOKED", "Reed workshop", "2025-09-20", 0.5, False),
    ("Lila is allergic to walnuts", "Lila", "STATES", None, None, 0.95, False),
    ("Lila prefers short answers with an example", "Lila", "PREFERS", None, None, 0.9, False),
    ("Lila drinks rooibos tea", "Lila", "DRINKS", None, None, 0.3, False),
    ("Lila likes to drink rooibos tea in the evening", "Lila", "DRINKS", None, None, 0.3, False),
]
"""Statement, subject, predicate, object, start of validity, importance, and whether there is one value at a time."""

TALK = [
    {
        "id": "t1",
        "role": "user",
        "name": "Lila",
        "content": "We finally moved to Ghent on the 27th. No walnuts in the new kitchen, please: I am allergic.",
    },
    {"id": "t2", "role": "assistant", "content": "Congratulations! I will leave walnuts out of every recipe."},
    {"id": "t3", "role": "user", "name": "Lila", "content": "I also joined the Fennel Choir here."},
]
SOURCES = {"Lila lives in Ghent": "t1", "Lila is allergic to walnuts": "t1", "Lila sings in the Fennel Choir": "t3"}


def fill_gallery(user: ExplorerUser) -> dict[str, str]:
    """Give a user of their own to the explorer user's tenant, and return the addresses of the views by name."""
    user.user = "Lila"
    base = "/v1/users/Lila"
    assert user.http.post(f"{base}/sessions", json={"session_id": "talk", "title": "The move to Ghent"}).is_success
    sent = {"session_id": "talk", "messages": TALK, "extract": False}
    assert user.http.post(f"{base}/messages", json=sent).is_success
    user.save(*map(_to_memory, FACTS))
    choir = user.memory_id("Fennel Choir")
    corrected = {"content": "Lila sings alto in the Fennel Choir"}
    assert user.http.patch(f"{base}/memories/{choir}", json=corrected).is_success
    ghent = user.memory_id("lives in Ghent")
    detailed = {"content": "Lila lives in Ghent, near the harbour"}
    assert user.http.patch(f"{base}/memories/{ghent}", json=detailed).is_success
    tea = user.http.get(f"{base}/memories", params={"keyword": "rooibos"}).json()["items"]
    run = user.consolidate(
        {
            "action": "MERGE",
            "memory_ids": [memory["id"] for memory in tea],
            "content": "Lila drinks rooibos tea in the evening",
            "verified": True,
            "reason": "Both say that she drinks rooibos; the second one says when.",
        },
        {
            "action": "ASSOCIATE",
            "memory_ids": [user.memory_id("Halyard Studio as"), user.memory_id("cargo bike")],
            "reason": "She rides the bike to this job.",
        },
    )
    return {
        "users": "users",
        "spaces": "spaces",
        "space": "spaces/atlas",
        "overview": "overview",
        "search": "search?q=Where+does+Lila+live%3F",
        "memories": "memories",
        "entity": f"entities/{user.entity_id('Lila')}",
        "sessions": "sessions",
        "session": "sessions/talk",
        "timeline": f"memories/{ghent}",
        "compare": "compare?v1=2024-01-01T00%3A00&go=yes",
        "runs": "runs",
        "run": f"runs/{run['id']}",
        "keys": "keys",
    }


def _to_memory(fact: tuple[str, str, str, str | None, str | None, float, bool]) -> dict[str, Any]:
    content, subject, predicate, target, start, importance, single = fact
    source = {"session_id": "talk", "message_ids": [SOURCES[content]]} if content in SOURCES else None
    return {
        "content": content,
        "subject": {"name": subject, "type": PEOPLE_AND_PLACES[subject]},
        "predicate": predicate,
        "importance": importance,
        "single_valued": single,
        **({"object": {"name": target, "type": PEOPLE_AND_PLACES[target]}} if target else {}),
        **({"valid_at": f"{start}T00:00:00Z"} if start else {}),
        **({"source": source} if source else {}),
    }

"""Neo4j Browser: settings and style that it applies after the login, the prepared queries, and links that open it."""

from __future__ import annotations

import json
import re
from urllib.parse import quote, urlencode, urlsplit

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.files import cypher_root

DEFAULT_QUERY = "as_of"
"""The query about a user that is opened when none is named."""

USERS_QUERY = "users"
"""The query that is opened when no user is named: it lists them."""

TENANT_QUERIES = frozenset({USERS_QUERY, "consolidation_runs"})
"""The queries about a whole tenant."""

BROWSER_SETTINGS = {"autoComplete": False, "useReadTransactions": True}
"""Settings of Neo4j Browser.

With `autoComplete`, Browser draws every relationship between the nodes of a result, also superseded versions that the
query left out. With `useReadTransactions`, a query typed there cannot change the graph by mistake.
"""

_SAMPLE_GROUP = "'default:mara'"
_RULE = re.compile(r"([\w.]+)\s*\{(.*?)\n\}", re.DOTALL)
_PROPERTY = re.compile(r'([\w-]+):\s*"?(.*?)"?;')


def setup_commands() -> list[str]:
    """Return the commands, without the leading colon, that make Browser draw only what a query returns, in colour."""
    grass = (cypher_root() / "explore" / "style.grass").read_text("utf-8")
    style = {selector: dict(_PROPERTY.findall(body)) for selector, body in _RULE.findall(grass)}
    return [f"config {json.dumps(BROWSER_SETTINGS)}", f"style {json.dumps(style)}"]


def query_names() -> list[str]:
    """Return the names of the prepared queries, sorted."""
    return sorted(path.stem for path in (cypher_root() / "explore").glob("*.cypher"))


def read_query(name: str, group_id: str) -> str:
    """Return a prepared query for one user; raise InvalidInput for a name that no query has."""
    if name not in query_names():
        raise InvalidInput(f"There is no query {name}: choose one of {', '.join(query_names())}.")
    text = (cypher_root() / "explore" / f"{name}.cypher").read_text("utf-8")
    return text.replace(_SAMPLE_GROUP, json.dumps(group_id, ensure_ascii=False))


def browser_link(browser_url: str, bolt_uri: str, user: str, text: str) -> str:
    """Return the address that opens Browser with the server and the user name entered and `text` in the editor."""
    scheme, address = urlsplit(bolt_uri)[:2]
    query = {"dbms": f"{scheme}://{quote(user)}@{address}", "cmd": "edit", "arg": text}
    return f"{browser_url}?{urlencode(query, quote_via=quote)}"

"""Lists the requirements that no test shows: IDs of `requirements.txt` that no `@pytest.mark.req` carries.

Prints them one a line and ends with 1 when there are any, or when a test carries an ID that does not exist.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent


def known(path: Path = TESTS / "requirements.txt") -> list[str]:
    """Return the IDs of a list, one a line."""
    return path.read_text("utf-8").split()


def carried(source: str) -> Iterator[str]:
    """Yield the IDs of every `pytest.mark.req("…")` in a test file's text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req":
            yield from (
                each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def main() -> int:
    """Compare the list with the tests."""
    shown = {each for path in sorted(TESTS.rglob("test_*.py")) for each in carried(path.read_text("utf-8"))}
    ids = known()
    missing = [each for each in ids if each not in shown]
    unknown = sorted(shown - set(ids))
    print("\n".join(missing) if missing else "Every requirement is shown by a test.")
    print(f"{len(ids) - len(missing)} of {len(ids)} requirements are shown by tests.", file=sys.stderr)
    if unknown:
        print(f"Unknown requirements in tests: {', '.join(unknown)}", file=sys.stderr)
    return 1 if missing or unknown else 0


if __name__ == "__main__":
    sys.exit(main())

"""Print every requirement of `requirements.md` with the tests that show it.

A test shows a requirement when it carries `@pytest.mark.req("ID")`, itself or through its module's `pytestmark`. The
exit status is 1 when a requirement has no test, or when a test carries an ID that does not exist.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
EXTERNAL = frozenset({"GO-15", "TRUE-27"})
"""Requirements that point to a document which is not given: no test can show them."""

_ROW = re.compile(r"^\| ([A-Z]+-\d\d) \| (.+) \|$", re.MULTILINE)


def read_requirements(path: Path = TESTS / "requirements.md") -> dict[str, str]:
    """Return the sentence of each ID, in the order of the file."""
    return dict(_ROW.findall(path.read_text("utf-8")))


def find_labels(source: str) -> Iterator[tuple[str, str]]:
    """Yield (ID, test name) for every label in a test file's text; a module's label has the name `*`."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ((requirement, node.name) for requirement in _label_ids(decorator))
            for child in ast.walk(node):
                if child is not node and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    for decorator in child.decorator_list:
                        yield from ((requirement, child.name) for requirement in _label_ids(decorator))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # Labels of single parameters: `pytest.param(…, marks=pytest.mark.req("X"))`.
                for decorator in node.decorator_list:
                    if not _is_label(decorator):
                        yield from ((requirement, node.name) for requirement in _nested_ids(decorator))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            yield from ((requirement, "*") for requirement in _nested_ids(node.value))


def collect_tests() -> dict[str, list[str]]:
    """Return `file::test` of every test by the ID it carries."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for requirement, name in find_labels(path.read_text("utf-8")):
            test = f"{path.relative_to(TESTS)}::{name}"
            if test not in found[requirement]:
                found[requirement].append(test)
    return dict(found)


def main() -> int:
    """Print the list and return the exit status."""
    requirements, tests = read_requirements(), collect_tests()
    for requirement, sentence in requirements.items():
        print(f"{requirement}  {sentence}")
        for test in tests.get(requirement, []):
            print(f"    {test}")
    missing = [requirement for requirement in requirements if requirement not in tests and requirement not in EXTERNAL]
    unknown = sorted(set(tests) - set(requirements))
    shown = len(requirements) - len(missing) - len(EXTERNAL)
    print(f"{shown} of {len(requirements) - len(EXTERNAL)} requirements are shown by tests.", file=sys.stderr)
    if missing:
        print(f"Without a test: {', '.join(missing)}", file=sys.stderr)
    if unknown:
        print(f"Labels without a requirement: {', '.join(unknown)}", file=sys.stderr)
    return 1 if missing or unknown else 0


def _is_label(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req"


def _label_ids(node: ast.expr) -> Iterator[str]:
    if _is_label(node) and isinstance(node, ast.Call):
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value


def _nested_ids(node: ast.expr) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.expr):
            yield from _label_ids(child)


if __name__ == "__main__":
    sys.exit(main())

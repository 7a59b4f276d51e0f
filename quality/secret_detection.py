"""The precision and recall of the detection of secrets, by class, on labelled lines.

    python -m quality.secret_detection [--details]

- recall: lines of a class in which a secret of that class is found, of all its lines;
- refused: lines with a secret in which any secret is found, whatever its class;
- redacted: lines of text of which redaction leaves no letter or digit that is marked, of all lines of text;
- precision: lines in which a class is found and expected, of all lines in which it is found.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

from graphmem.secrets.detection import SECRET_CLASSES, SecretClass
from graphmem.secrets.scanner import find_secrets, scan_value
from quality.metrics import Ratio, ratio
from quality.secret_lines import LabelledLine, load_secret_lines


@dataclass(frozen=True, slots=True)
class ScannedLine:
    """A line, the classes that were found in it, and whether redaction removes all that it must."""

    line: LabelledLine
    found: frozenset[SecretClass]
    is_redacted: bool


@dataclass(frozen=True, slots=True)
class ClassScore:
    """The measures of one class, or of all classes together."""

    recall: Ratio
    refused: Ratio
    redacted: Ratio
    precision: Ratio


def scan_line(line: LabelledLine) -> ScannedLine:
    """Run all detectors on a line."""
    if not isinstance(line.value, str):
        return ScannedLine(line, frozenset(scan_value(line.value)), True)
    findings = find_secrets(line.value)
    covered = {at for finding in findings for at in range(finding.start, finding.end)}
    left = [
        at for start, end in line.hidden for at in range(start, end) if at not in covered and line.value[at].isalnum()
    ]
    return ScannedLine(line, frozenset(finding.cls for finding in findings), not left)


def score_class(cls: SecretClass, scanned: Sequence[ScannedLine]) -> ClassScore:
    """Return the measures of one class."""
    labelled = [item for item in scanned if item.line.cls == cls]
    return ClassScore(
        recall=ratio(cls in item.found for item in labelled),
        refused=ratio(bool(item.found) for item in labelled),
        redacted=ratio(item.is_redacted for item in labelled if item.line.hidden),
        precision=ratio(item.line.cls == cls for item in scanned if cls in item.found),
    )


def sum_scores(scores: Sequence[ClassScore]) -> ClassScore:
    """Return the measures of several classes together."""
    return ClassScore(
        recall=sum((score.recall for score in scores), Ratio()),
        refused=sum((score.refused for score in scores), Ratio()),
        redacted=sum((score.redacted for score in scores), Ratio()),
        precision=sum((score.precision for score in scores), Ratio()),
    )


def render_table(scanned: Sequence[ScannedLine]) -> str:
    """Return the measures by class as a Markdown table."""
    scores = {cls: score_class(cls, scanned) for cls in SECRET_CLASSES}
    rows = [*scores.items(), ("all", sum_scores(list(scores.values())))]
    harmless = [item for item in scanned if item.line.cls is None]
    return "\n".join(
        [
            "| class | lines | recall | refused | redacted | precision |",
            "|---|---:|---:|---:|---:|---:|",
            *(
                f"| {name} | {score.recall.whole} | "
                + " | ".join(map(_percent, (score.recall, score.refused, score.redacted, score.precision)))
                + " |"
                for name, score in rows
            ),
            "",
            f"Look-alikes without a finding: {_percent(ratio(not item.found for item in harmless))} "
            f"of {len(harmless)}.",
        ]
    )


def describe_errors(scanned: Sequence[ScannedLine]) -> list[str]:
    """Return a line for each miss, each false finding and each rest after redaction."""
    errors = []
    for item in scanned:
        expected = {item.line.cls} if item.line.cls else set()
        if missed := expected - item.found:
            errors.append(f"missed {missed.pop()}, found {sorted(item.found)}: {item.line.value!r}")
        elif wrong := item.found - expected:
            errors.append(f"false {sorted(wrong)}: {item.line.value!r}")
        elif not item.is_redacted:
            errors.append(f"redacted in part ({item.line.cls}): {item.line.value!r}")
    return errors


def main() -> None:
    """Print the measures, with `--details` also every line that differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--details", action="store_true", help="print every line that differs")
    arguments = parser.parse_args()
    lines = load_secret_lines()
    started = time.perf_counter()
    scanned = [scan_line(line) for line in lines]
    seconds = time.perf_counter() - started
    print(render_table(scanned))
    print(f"\n{len(lines)} lines in {seconds:.2f} s.")
    if arguments.details:
        print("", *describe_errors(scanned), sep="\n")


def _percent(value: Ratio) -> str:
    return "–" if value.value is None else f"{100 * value.value:.1f} %"


if __name__ == "__main__":
    main()

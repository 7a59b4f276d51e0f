"""Generated requests: each operation of the OpenAPI document alone, and sequences in which one feeds the next."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from torture.findings import Findings

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
"""What every response must conform to."""

HANG_SECONDS = 30
"""Seconds without a response after which a request hangs."""

METHODS = frozenset({"get", "post", "patch", "delete"})

SETTINGS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}

STEPS = 12
"""Most requests of a sequence."""

USERS = ["mara", "Ines O'Neil", "用户"]
"""Users that most requests are about, so that they meet each other's data."""

log = logging.getLogger(__name__)


class RequestFuzzer:
    """Sends generated requests to a server and records what they violate."""

    def __init__(self, openapi: Mapping[str, Any], address: str, key: str, findings: Findings) -> None:
        self._schema = schemathesis.openapi.from_dict(dict(openapi))
        self._address = address
        self._headers = {"Authorization": f"Bearer {key}"}
        self._findings = findings
        self.operations = [
            (path, method) for path, methods in openapi["paths"].items() for method in methods if method in METHODS
        ]

    def fuzz_operations(self, cases: int, seed: int | None = None) -> None:
        """Send generated requests to each operation, about as many in total as given."""
        for path, method in self.operations:
            self.fuzz_operation(path, method, max(1, cases // len(self.operations)), seed)

    def fuzz_operation(self, path: str, method: str, cases: int, seed: int | None = None) -> None:
        """Send generated requests to one operation."""

        @given(case=self._schema[path][method].as_strategy(), user=st.sampled_from([*USERS, None]))
        @hypothesis.settings(max_examples=cases, **SETTINGS)
        def send(case: schemathesis.Case[Any], user: str | None) -> None:
            if user is not None and "user_id" in (case.path_parameters or {}):
                case.path_parameters["user_id"] = user
            self.check(case)

        (hypothesis.seed(seed)(send) if seed is not None else send)()

    def fuzz_sequences(self, sequences: int, **options: Any) -> None:
        """Send sequences of requests in which later ones use ids of earlier responses."""
        fuzzer = self

        class Sequence(self._schema.as_state_machine()):
            started = 0

            def __init__(self) -> None:
                super().__init__()
                Sequence.started += 1

            def get_call_kwargs(self, case: schemathesis.Case[Any]) -> dict[str, Any]:
                return {"base_url": fuzzer._address, "headers": fuzzer._headers, "timeout": HANG_SECONDS}

            def validate_response(self, response: Any, case: schemathesis.Case[Any], *_: Any, **__: Any) -> None:
                fuzzer.judge(case, response)

        while (left := sequences - Sequence.started) > 0:
            settings = hypothesis.settings(max_examples=left, stateful_step_count=STEPS, **SETTINGS, **options)
            before = Sequence.started
            # The responses decide what can follow, so that Hypothesis may meet other choices than before and give up.
            with suppress(Flaky):
                run_state_machine_as_test(Sequence, settings=settings)
            if Sequence.started == before:
                return

    def check(self, case: schemathesis.Case[Any]) -> None:
        """Send one request and judge its response."""
        try:
            response = case.call(base_url=self._address, headers=self._headers, timeout=HANG_SECONDS)
        except requests.Timeout:
            self._findings.count_case()
            self._findings.add(f"{case.operation.label}: no response", case.as_curl_command())
            return
        except (requests.ConnectionError, requests.exceptions.InvalidHeader, UnicodeError) as error:
            log.debug("a case that the client cannot send: %s", error)
            return
        self.judge(case, response)

    def judge(self, case: schemathesis.Case[Any], response: Any) -> None:
        """Record what a response violates."""
        self._findings.count_case()
        # Calls of models need a provider, which the server of these requests does not have and says so.
        checks = [check for check in CHECKS if response.status_code != 501 or check is not not_a_server_error]
        try:
            case.validate_response(response, checks=checks)
        except FailureGroup as group:
            for failure in group.exceptions:
                kind = f"{case.operation.label}: {response.status_code}: {getattr(failure, 'title', failure)}"
                self._findings.add(kind, f"{case.as_curl_command()} → {response.text[:300]}")

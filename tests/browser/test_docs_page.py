"""The documentation of the HTTP API in a real browser."""

from __future__ import annotations

from tests.browser.conftest import Page, Service


def test_docs_page_shows_the_routes_without_a_network(page: Page, service: Service) -> None:
    page.driver.get(f"{service.address}/docs")
    page.wait_for(".opblock-summary", "/v1/users/{user_id}/memories")
    page.wait_for(".opblock-summary-operation-id", "memories_save")
    loaded = page.driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert {address.startswith((service.address, "data:")) for address in loaded} == {True}
    assert page.console_errors == []

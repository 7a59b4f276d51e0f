"""Which classes of secrets a tenant may store."""

from __future__ import annotations

from collections.abc import Iterable

from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.json_values import JSON
from graphmem.secrets.detection import SECRET_CLASSES, SecretClass
from graphmem.secrets.values import scan_value


class SecretPolicy:
    """Classes of secrets that may be stored: allowed for every tenant (`email`) or for one (`acme:email`)."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """Parse the allowed classes; raise ConfigurationError for an unknown class."""
        self._global_classes: set[SecretClass] = set()
        self._classes_by_tenant: dict[str, set[SecretClass]] = {}
        for entry in allowed:
            tenant, _, name = entry.strip().rpartition(":")
            if name not in SECRET_CLASSES:
                raise ConfigurationError(
                    f"GRAPHMEM_ALLOWED_SECRET_CLASSES contains the unknown class {name!r}; the classes are "
                    f"{', '.join(SECRET_CLASSES)}.",
                    retry_after=None,
                )
            classes = self._classes_by_tenant.setdefault(tenant, set()) if tenant else self._global_classes
            classes.add(name)

    def allowed_classes(self, tenant: str) -> frozenset[SecretClass]:
        """Return the classes the tenant may store."""
        return frozenset(self._global_classes | self._classes_by_tenant.get(tenant, set()))

    def refused_classes(self, value: JSON, tenant: str) -> list[str]:
        """Return, sorted, the classes of secrets in a text or JSON value that the tenant may not store."""
        return sorted(scan_value(value) - self.allowed_classes(tenant))

"""TLS to Neo4j: the certificate is verified, unless the address says that any is accepted."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import DatabaseUnavailable
from graphmem.runtime.settings import Settings
from tests.faults.proxy import Proxy


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with a self-signed certificate of 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "certificate.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
async def tls_port(database: Settings, graph: Graph, certificate: Path) -> AsyncIterator[int]:
    """The port of the test's Neo4j behind TLS."""
    address = urlsplit(str(database.neo4j_uri))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    proxy = Proxy(str(address.hostname), address.port or 7687, context)
    await proxy.start()
    yield proxy.port
    await proxy.stop()


async def connect(settings: Settings, uri: str) -> None:
    assert settings.neo4j_password
    graph = Graph(uri, settings.neo4j_user, settings.neo4j_password.get_secret_value())
    try:
        await graph.verify_connectivity()
        assert await graph.fetch("schema.get_embedding_model")
    finally:
        await graph.close()


async def test_a_certificate_that_nobody_trusts_is_refused(database: Settings, tls_port: int) -> None:
    with pytest.raises(DatabaseUnavailable):
        await connect(database, f"bolt+s://127.0.0.1:{tls_port}")


async def test_a_trusted_certificate_is_accepted(
    database: Settings, tls_port: int, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    await connect(database, f"bolt+s://127.0.0.1:{tls_port}")


async def test_any_certificate_is_accepted_where_the_address_says_so(database: Settings, tls_port: int) -> None:
    await connect(database, f"bolt+ssc://127.0.0.1:{tls_port}")


async def test_plain_bolt_to_a_server_with_tls_is_refused(database: Settings, tls_port: int) -> None:
    with pytest.raises(DatabaseUnavailable):
        await connect(database, f"bolt://127.0.0.1:{tls_port}")

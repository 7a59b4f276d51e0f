"""Encryption of stored responses that hold a secret, with the key of their caller."""

from __future__ import annotations

import base64
import hmac

from cryptography.fernet import Fernet, InvalidToken


class ResponseCipher:
    """Encrypts and decrypts with a key that is derived from the caller's."""

    def __init__(self, secret: str) -> None:
        digest = hmac.digest(secret.encode(), b"graphmem idempotent answer", "sha256")
        self._fernet = Fernet(base64.urlsafe_b64encode(digest))

    def encrypt(self, body: bytes) -> str:
        """Return an encrypted body."""
        return self._fernet.encrypt(body).decode()

    def decrypt(self, text: str) -> bytes | None:
        """Return a body again, None for one of another caller."""
        try:
            return self._fernet.decrypt(text)
        except InvalidToken:
            return None

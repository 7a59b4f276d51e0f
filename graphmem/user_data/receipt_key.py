"""The key that signs receipts of erasures: a setting, or a file in the data folder."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress

from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.settings import Settings

RECEIPT_KEY_FILE = "receipt.key"
"""Name of the file in the data folder."""


def load_receipt_key(settings: Settings) -> bytes:
    """Return the key of the settings, or that of the file, which is created with a random key if it is missing.

    Raises ConfigurationError when the file cannot be written or read.
    """
    if settings.receipt_key is not None:
        return settings.receipt_key.get_secret_value().encode()
    path = settings.data_dir / RECEIPT_KEY_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            # Written beside its place and then linked to it: another process never reads half a key, nor replaces one.
            draft = path.with_suffix(f".{secrets.token_hex(8)}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32))
            with suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        return path.read_text(encoding="ascii").strip().encode()
    except OSError as error:
        raise ConfigurationError(
            f"The key of receipts {path} cannot be used ({error.strerror}): set GRAPHMEM_RECEIPT_KEY, or "
            "GRAPHMEM_DATA_DIR to a folder you can write to."
        ) from error

"""All data of a user: export, import, erasure and backup."""

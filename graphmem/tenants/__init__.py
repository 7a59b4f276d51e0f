"""Tenants: their users, API keys, instructions and product profiles."""

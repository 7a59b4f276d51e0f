"""Tenants in several graphs."""

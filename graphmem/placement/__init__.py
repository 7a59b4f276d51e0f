"""Tenants in several graphs: listing them, and moving one to another graph while it is in use."""

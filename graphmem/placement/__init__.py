"""Tenants in several graphs: their list, and moving one of them to another graph while it is read and written."""

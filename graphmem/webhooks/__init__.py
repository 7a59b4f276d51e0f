"""Delivery of changes to webhooks."""

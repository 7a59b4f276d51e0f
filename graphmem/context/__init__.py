"""What to put before the model: built within a budget, and what is learned from conversations for it."""

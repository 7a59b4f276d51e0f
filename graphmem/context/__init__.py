"""Context for a model's prompt: building it within a token budget, and learning from conversations."""

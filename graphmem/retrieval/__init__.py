"""From questions to memories."""

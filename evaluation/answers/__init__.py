"""The share of questions that a reader answers rightly from contexts of a given size."""

"""Language handling: normalising, tokenising, stemming, comparing names, reading times; word lists per language.

The package imports nothing else from graphmem. The word lists are data: one file per language in `words/`.
"""

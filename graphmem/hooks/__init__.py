"""Memory for coding agents through their hooks: contexts before a prompt, capture of the turns after it.

A hook runs for each prompt, so these modules import the standard library only, and the tags of `graphmem.text`.
"""

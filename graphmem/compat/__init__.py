"""The programming interfaces of other memories over graphmem, so that a program changes one import."""

"""APIs of other memory libraries over graphmem, so that programs only change an import."""

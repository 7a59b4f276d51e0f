"""An embedded Neo4j Community server, which needs neither Docker nor an installed Java.

`server` starts, joins and stops it; `supervisor` runs it in a separate process.
"""

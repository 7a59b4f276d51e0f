"""The graph database: named queries in transactions, migrations, and an embedded server."""

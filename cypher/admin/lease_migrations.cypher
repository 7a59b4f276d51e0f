// Make the lease of migrations unique. A migration cannot do it, because the first one runs under the lease.
CREATE CONSTRAINT graphmem_migration_lease IF NOT EXISTS FOR (l:MigrationLease) REQUIRE l.id IS UNIQUE

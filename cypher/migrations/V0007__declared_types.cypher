// The types of memories and entities that a tenant declares: one node a tenant.

CREATE CONSTRAINT graphmem_declared_types IF NOT EXISTS FOR (t:TenantTypes) REQUIRE t.tenant IS UNIQUE;

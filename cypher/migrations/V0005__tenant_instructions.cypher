// What a tenant wants remembered, and what not: one node a tenant.

CREATE CONSTRAINT graphmem_instructions IF NOT EXISTS FOR (i:TenantInstructions) REQUIRE i.tenant IS UNIQUE;

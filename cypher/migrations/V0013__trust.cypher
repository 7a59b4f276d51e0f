// Which sources a tenant trusts more than others: one node a tenant.
CREATE CONSTRAINT graphmem_trust IF NOT EXISTS FOR (t:TenantTrust) REQUIRE t.tenant IS UNIQUE;

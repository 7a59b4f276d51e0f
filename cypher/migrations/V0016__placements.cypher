// In which graph each tenant lives. The first graph, the home, holds the locations; a tenant without one lives there.
CREATE CONSTRAINT graphmem_placement IF NOT EXISTS FOR (p:Placement) REQUIRE p.tenant IS UNIQUE;
CREATE CONSTRAINT graphmem_placement_table IF NOT EXISTS FOR (t:PlacementTable) REQUIRE t.name IS UNIQUE;
// In every graph that a tenant has moved from or to: whether it takes writes of the tenant.
CREATE CONSTRAINT graphmem_write_barrier IF NOT EXISTS FOR (b:WriteBarrier) REQUIRE b.tenant IS UNIQUE;

// In which graph each tenant lives. The first graph, the home, holds the assignments; a tenant without one lives there.
CREATE CONSTRAINT graphmem_placement IF NOT EXISTS FOR (p:Placement) REQUIRE p.tenant IS UNIQUE;
CREATE CONSTRAINT graphmem_placement_table IF NOT EXISTS FOR (t:PlacementTable) REQUIRE t.name IS UNIQUE;
// In every graph: whether it takes writes of a tenant that moves or has moved, and what was written while it moves.
CREATE CONSTRAINT graphmem_placement_gate IF NOT EXISTS FOR (g:PlacementGate) REQUIRE g.tenant IS UNIQUE;
CREATE INDEX graphmem_placed_change_tenant IF NOT EXISTS FOR (c:PlacedChange) ON (c.tenant);

// Spaces, which are nodes of groups as users are, and the roles of their members.
CREATE INDEX graphmem_space_tenant IF NOT EXISTS FOR (s:SharedSpace) ON (s.tenant);
CREATE CONSTRAINT graphmem_space_member IF NOT EXISTS FOR (m:SpaceMember) REQUIRE (m.group_id, m.member) IS UNIQUE;
CREATE INDEX graphmem_space_member_group IF NOT EXISTS FOR (m:SpaceMember) ON (m.group_id);
// Responses to requests of members, which may contain what is of a space.
CREATE INDEX graphmem_idempotency_tenant IF NOT EXISTS FOR (i:IdempotentRequest) ON (i.tenant);
CREATE INDEX graphmem_space_member_member IF NOT EXISTS FOR (m:SpaceMember) ON (m.member);

// Erasing every fact and node of one user.

// name: erase_facts(group_id)
// Erase every version of every memory.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() DELETE r RETURN count(*) AS erased

// name: erase_nodes(group_id)
// Erase every node of the user with its relationships; count them by label. An entity also has its type as a label.
MATCH (n) WHERE n.group_id = $group_id
WITH n, CASE WHEN n:Entity THEN 'Entity' ELSE labels(n)[0] END AS kind
DETACH DELETE n
RETURN kind, count(*) AS erased

// name: count_residue(group_id)
// Count the nodes and relationships of a user that are left anywhere in the graph.
RETURN COUNT { MATCH (n) WHERE n.group_id = $group_id OR (n:IdempotentRequest AND n.owner_group = $group_id) }
     + COUNT { MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() }
     + COUNT { MATCH ()-[r:MENTIONS|HAS_EPISODE|NEXT_EPISODE|HAS_ARCHIVE]->() WHERE r.group_id = $group_id } AS residue

// The users of a tenant, the latest write first: how many facts and messages each has now.
WITH 'default:mara' AS group_id
WITH split(group_id, ':')[0] AS tenant
MATCH (user:User) WHERE user.group_id STARTS WITH tenant + ':'
WITH user ORDER BY user.last_write_at DESC LIMIT 100
RETURN user.user_id AS user, user.last_write_at AS last_write, user.created_at AS since,
       COUNT { ()-[fact:RELATES_TO {group_id: user.group_id}]->() WHERE fact.known_to > datetime() AND fact.valid_from <= datetime() AND fact.valid_to > datetime() } AS current_facts,
       COUNT { (:Episodic {group_id: user.group_id}) } AS messages
ORDER BY last_write DESC

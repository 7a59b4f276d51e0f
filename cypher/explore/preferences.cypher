// What was learned about how the user wants to be answered, and the behaviour that was counted, the most certain first.
WITH 'default:mara' AS group_id
CALL (group_id) {
  MATCH (learned:LearnedPreference {group_id: group_id})
  RETURN learned, learned.preference_type AS kind, learned.name AS what, learned.confidence_score AS confidence,
         learned.frequency AS times, learned.last_observed AS last
  UNION ALL
  MATCH (learned:BehaviorPattern {group_id: group_id})
  RETURN learned, learned.pattern_type AS kind, learned.pattern_description AS what,
         learned.confidence_score AS confidence, learned.occurrence_count AS times, learned.last_detected AS last
}
RETURN kind, what, confidence, times, last, learned
ORDER BY confidence DESC
LIMIT 300

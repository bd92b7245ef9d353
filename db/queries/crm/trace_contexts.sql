-- name: OperationListTraceContexts :many
-- For jobs that are about to be inserted, in the same transaction. Only those that have one.
SELECT id, trace_context::text AS trace_context
FROM operations
WHERE id = ANY (@ids::uuid[]) AND trace_context IS NOT NULL;

-- What cmd/bridge asks the CRM side, to count and to compare with the answers of db/queries/erp/demo.sql. No query
-- joins the two databases.
-- name: DemoTotals :one
SELECT (SELECT count(*) FROM orders o WHERE o.tenant_id = @tenant_id) AS orders,
       count(*) AS operations,
       count(*) FILTER (WHERE status IN ('pending', 'processing', 'unknown')) AS open,
       count(*) FILTER (WHERE status = 'processing') AS processing,
       count(*) FILTER (WHERE status = 'failed') AS failed
FROM operations
WHERE tenant_id = @tenant_id;

-- The operations that should have an invoice, a page at a time: all but those cancelled, or replaced by a revision.
-- name: DemoWantedList :many
SELECT id, key, source, order_id, role, sequence, status, reason, detail
FROM operations
WHERE tenant_id = @tenant_id AND id > @after_id AND status <> 'cancelled' AND superseded_at IS NULL
ORDER BY id
LIMIT @page_size;

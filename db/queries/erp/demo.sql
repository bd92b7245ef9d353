-- What cmd/bridge asks the ERP side, to count and to compare with the answers of db/queries/crm/demo.sql. No query
-- joins the two databases.
-- name: DemoTotals :one
SELECT count(*) AS invoices
FROM invoices
WHERE tenant_id = @tenant_id;

-- Invoices beyond the first of their business claim. The constraint says there are none; this does not take its word.
-- name: DemoDuplicates :one
SELECT coalesce(sum(claimed.invoices - 1), 0)::bigint AS duplicates
FROM (
    SELECT count(*) AS invoices
    FROM invoices
    WHERE tenant_id = @tenant_id
    GROUP BY tenant_id, source, order_id, role, sequence
    HAVING count(*) > 1
) AS claimed;

-- The positions (from 1) of those claims that have an invoice. The arrays are parallel.
-- name: DemoInvoicedList :many
SELECT wanted.position::bigint AS position
FROM (
    SELECT unnest(@sources::text[]) AS source, unnest(@order_ids::text[]) AS order_id,
           unnest(@roles::text[]) AS role, unnest(@sequences::integer[]) AS sequence,
           generate_series(1, cardinality(@sources::text[])) AS position
) AS wanted
JOIN invoices i ON i.tenant_id = @tenant_id AND i.source = wanted.source AND i.order_id = wanted.order_id
               AND i.role = wanted.role AND i.sequence = wanted.sequence;

-- name: DemoRegistrations :one
SELECT count(*) FILTER (WHERE status = 'succeeded') AS registered,
       count(*) FILTER (WHERE status IN ('pending', 'processing', 'unknown')) AS open,
       count(*) FILTER (WHERE status = 'failed') AS failed
FROM registrations
WHERE tenant_id = @tenant_id;

-- What an accountant searches by. The filter stands in each query, word for word. These run with custom plans
-- (InvoiceSearchBegin): each filter that is not given falls away then, and each that is can use its index. The tenant stands in
-- the expressions of two indexes as well, see migration 00008.

-- name: InvoiceSearchBegin :exec
-- Until the end of the transaction.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true);

-- name: InvoiceSearchPatience :exec
-- For the statements that follow, until the end of the transaction.
SELECT set_config('statement_timeout', @milliseconds::text, true);

-- name: InvoiceSearchOlder :many
-- Newest first, from behind the position (beyond_at, beyond_id) on.
SELECT id, document, created_at
FROM own_invoices
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(term_key)::text IS NULL -- no term
       OR operation_key = sqlc.narg(term_key)::text
       OR tenant_id || '/' || lower(order_id) LIKE lower(sqlc.narg(term_pattern)::text)
       OR tenant_id || '/' || lower(customer_name) LIKE lower(sqlc.narg(term_pattern)::text)
       OR series_prefix = sqlc.narg(term_prefix)::text
          AND (sqlc.narg(term_year)::int IS NULL OR series_year = sqlc.narg(term_year)::int)
          AND (sqlc.narg(term_count)::bigint IS NULL OR series_number = sqlc.narg(term_count)::bigint))
  AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
  AND (sqlc.narg(order_id)::text IS NULL OR order_id = sqlc.narg(order_id)::text)
  AND (sqlc.narg(role)::text IS NULL OR role = sqlc.narg(role)::text)
  AND (sqlc.narg(currency)::text IS NULL OR currency = sqlc.narg(currency)::text)
  AND (sqlc.narg(issued_from)::text IS NULL OR issue_date >= sqlc.narg(issued_from)::text::date)
  AND (sqlc.narg(issued_to)::text IS NULL OR issue_date <= sqlc.narg(issued_to)::text::date)
  AND (sqlc.narg(created_from)::timestamptz IS NULL OR created_at >= sqlc.narg(created_from)::timestamptz)
  AND (sqlc.narg(created_to)::timestamptz IS NULL OR created_at < sqlc.narg(created_to)::timestamptz)
  AND (sqlc.narg(beyond_id)::uuid IS NULL
       OR (created_at, id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY created_at DESC, id DESC
LIMIT @max_items;

-- name: InvoiceSearchNewer :many
-- Oldest first, from behind the position (beyond_at, beyond_id) on.
SELECT id, document, created_at
FROM own_invoices
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(term_key)::text IS NULL -- no term
       OR operation_key = sqlc.narg(term_key)::text
       OR tenant_id || '/' || lower(order_id) LIKE lower(sqlc.narg(term_pattern)::text)
       OR tenant_id || '/' || lower(customer_name) LIKE lower(sqlc.narg(term_pattern)::text)
       OR series_prefix = sqlc.narg(term_prefix)::text
          AND (sqlc.narg(term_year)::int IS NULL OR series_year = sqlc.narg(term_year)::int)
          AND (sqlc.narg(term_count)::bigint IS NULL OR series_number = sqlc.narg(term_count)::bigint))
  AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
  AND (sqlc.narg(order_id)::text IS NULL OR order_id = sqlc.narg(order_id)::text)
  AND (sqlc.narg(role)::text IS NULL OR role = sqlc.narg(role)::text)
  AND (sqlc.narg(currency)::text IS NULL OR currency = sqlc.narg(currency)::text)
  AND (sqlc.narg(issued_from)::text IS NULL OR issue_date >= sqlc.narg(issued_from)::text::date)
  AND (sqlc.narg(issued_to)::text IS NULL OR issue_date <= sqlc.narg(issued_to)::text::date)
  AND (sqlc.narg(created_from)::timestamptz IS NULL OR created_at >= sqlc.narg(created_from)::timestamptz)
  AND (sqlc.narg(created_to)::timestamptz IS NULL OR created_at < sqlc.narg(created_to)::timestamptz)
  AND (created_at, id) > (@beyond_at::timestamptz, @beyond_id::uuid)
ORDER BY created_at, id
LIMIT @max_items;

-- name: InvoiceSearchSums :many
-- Of at most max_items invoices: who gets as many in all has not got the sums of everything.
SELECT currency, (role = 'credit_note')::boolean AS credit_notes, count(*) AS invoices,
       sum(net)::text AS net, sum(vat)::text AS vat, sum(gross)::text AS gross
FROM (SELECT currency, role, net, vat, gross
      FROM own_invoices
      WHERE tenant_id = @tenant_id
        AND (sqlc.narg(term_key)::text IS NULL -- no term
             OR operation_key = sqlc.narg(term_key)::text
             OR tenant_id || '/' || lower(order_id) LIKE lower(sqlc.narg(term_pattern)::text)
             OR tenant_id || '/' || lower(customer_name) LIKE lower(sqlc.narg(term_pattern)::text)
             OR series_prefix = sqlc.narg(term_prefix)::text
                AND (sqlc.narg(term_year)::int IS NULL OR series_year = sqlc.narg(term_year)::int)
                AND (sqlc.narg(term_count)::bigint IS NULL OR series_number = sqlc.narg(term_count)::bigint))
        AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
        AND (sqlc.narg(order_id)::text IS NULL OR order_id = sqlc.narg(order_id)::text)
        AND (sqlc.narg(role)::text IS NULL OR role = sqlc.narg(role)::text)
        AND (sqlc.narg(currency)::text IS NULL OR currency = sqlc.narg(currency)::text)
        AND (sqlc.narg(issued_from)::text IS NULL OR issue_date >= sqlc.narg(issued_from)::text::date)
        AND (sqlc.narg(issued_to)::text IS NULL OR issue_date <= sqlc.narg(issued_to)::text::date)
        AND (sqlc.narg(created_from)::timestamptz IS NULL OR created_at >= sqlc.narg(created_from)::timestamptz)
        AND (sqlc.narg(created_to)::timestamptz IS NULL OR created_at < sqlc.narg(created_to)::timestamptz)
      LIMIT @max_items) AS found
GROUP BY currency, credit_notes
ORDER BY currency, credit_notes;

-- name: InvoiceSourceList :many
-- The sources that a tenant has invoices of, each found by one look-up behind the one before.
WITH RECURSIVE known AS (
    (SELECT b.source FROM order_balances AS b WHERE b.tenant_id = @tenant_id ORDER BY b.source LIMIT 1)
    UNION ALL
    SELECT (SELECT b.source FROM order_balances AS b
            WHERE b.tenant_id = @tenant_id AND b.source > known.source ORDER BY b.source LIMIT 1)
    FROM known
    WHERE known.source IS NOT NULL
)
SELECT source::text AS source FROM known WHERE source IS NOT NULL LIMIT 100;

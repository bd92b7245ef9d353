-- name: InvoiceInsert :batchexec
-- created_at is the time of the transaction, the same as first_seen_at of the reservation. Under the locks of orders and
-- counters nothing waits here; should it, then not with the haste of the statement before.
INSERT INTO invoices (
    id, tenant_id, number, series_prefix, series_year, series_number, status, source, order_id, role, sequence,
    operation_key, fingerprint_version, fingerprint, currency, issue_date, due_date,
    customer_name, customer_country, customer_vat_id, net, vat, gross, payable, corrects_id, document, created_at)
SELECT i.id, i.tenant_id, i.number, i.series_prefix, i.series_year, i.series_number, 'issued', i.source, i.order_id,
       i.role, i.sequence, i.operation_key, i.fingerprint_version, i.fingerprint, i.currency, i.issue_date,
       nullif(i.due_date, '')::date, i.customer_name, i.customer_country, nullif(i.customer_vat_id, ''),
       i.net, i.vat, i.gross, i.gross, nullif(i.corrects_id, '')::uuid, i.document, now()
FROM (SELECT unnest(@ids::uuid[]) AS id,
             unnest(@tenant_ids::text[]) AS tenant_id,
             unnest(@numbers::text[]) AS number,
             unnest(@series_prefixes::text[]) AS series_prefix,
             unnest(@series_years::integer[]) AS series_year,
             unnest(@series_numbers::bigint[]) AS series_number,
             unnest(@sources::text[]) AS source,
             unnest(@order_ids::text[]) AS order_id,
             unnest(@roles::text[]) AS role,
             unnest(@sequences::integer[]) AS sequence,
             unnest(@operation_keys::text[]) AS operation_key,
             unnest(@fingerprint_versions::smallint[]) AS fingerprint_version,
             unnest(@fingerprints::bytea[]) AS fingerprint,
             unnest(@currencies::text[]) AS currency,
             unnest(@issue_dates::text[])::date AS issue_date,
             unnest(@due_dates::text[]) AS due_date,
             unnest(@customer_names::text[]) AS customer_name,
             unnest(@customer_countries::text[]) AS customer_country,
             unnest(@customer_vat_ids::text[]) AS customer_vat_id,
             unnest(@nets::text[])::numeric AS net,
             unnest(@vats::text[])::numeric AS vat,
             unnest(@grosses::text[])::numeric AS gross,
             unnest(@corrects_ids::text[]) AS corrects_id,
             unnest(@documents::bytea[]) AS document) AS i
WHERE (SELECT set_config('lock_timeout', @lock_timeout::text, true)) IS NOT NULL;

-- name: InvoiceListSettled :many
-- What is issued already under these keys, or else under these business claims. A row per finding; an invoice that
-- has both the key and the claim comes once, by its key. Invoices never change or go, so what this finds is final;
-- what it does not find is still open: the unique constraints decide that.
-- It runs with a plan that is kept (tenantdb's PlannedOnce): to make one takes many times as long as the look-up.
-- OFFSET 0 keeps the planner to one look-up by index for each row, whatever it believes of the tables' size.
SELECT w.position::integer AS position, false AS by_key, i.id, i.number, i.operation_key, i.fingerprint_version,
       i.fingerprint, i.document, i.created_at, NULL::timestamptz AS expires_at, now()::timestamptz AS asked_at
FROM (SELECT unnest(@positions::integer[]) AS position,
             unnest(@tenant_ids::text[]) AS tenant_id,
             unnest(@keys::text[]) AS key,
             unnest(@sources::text[]) AS source,
             unnest(@order_ids::text[]) AS order_id,
             unnest(@roles::text[]) AS role,
             unnest(@sequences::bigint[]) AS sequence) AS w
CROSS JOIN LATERAL (
    SELECT inv.id, inv.number, inv.operation_key, inv.fingerprint_version, inv.fingerprint, inv.document, inv.created_at
    FROM invoices AS inv
    WHERE inv.tenant_id = w.tenant_id AND inv.source = w.source AND inv.order_id = w.order_id
      AND inv.role = w.role AND inv.sequence = w.sequence AND inv.operation_key <> w.key
    OFFSET 0) AS i
UNION ALL
SELECT w.position::integer, true, i.id, i.number, i.operation_key, i.fingerprint_version,
       i.fingerprint, i.document, i.created_at, r.expires_at, now()::timestamptz
FROM (SELECT unnest(@positions::integer[]) AS position,
             unnest(@tenant_ids::text[]) AS tenant_id,
             unnest(@keys::text[]) AS key) AS w
CROSS JOIN LATERAL (
    SELECT inv.id, inv.number, inv.operation_key, inv.fingerprint_version, inv.fingerprint, inv.document, inv.created_at
    FROM invoices AS inv
    WHERE inv.tenant_id = w.tenant_id AND inv.operation_key = w.key
    OFFSET 0) AS i
LEFT JOIN LATERAL (
    SELECT rec.expires_at
    FROM idempotency_records AS rec
    WHERE rec.tenant_id = w.tenant_id AND rec.operation = @operation AND rec.key = w.key
    OFFSET 0) AS r ON true;

-- name: InvoiceListCorrected :batchmany
-- The invoices that are to be corrected, by id or by number, and what has been credited on each so far. Only exact
-- under the lock of the order (OrderBalanceAdd), taken before.
SELECT w.position::integer AS position, i.id, i.role, i.source, i.order_id, i.currency, i.gross::text AS gross,
       (SELECT coalesce(sum(c.gross), 0)
        FROM invoices AS c
        WHERE c.corrects_id = i.id AND c.role = 'credit_note')::text AS credited
FROM (SELECT unnest(@positions::integer[]) AS position,
             unnest(@tenant_ids::text[]) AS tenant_id,
             unnest(@ids::text[]) AS id,
             unnest(@numbers::text[]) AS number) AS w
JOIN invoices AS i ON i.tenant_id = w.tenant_id AND (i.id = nullif(w.id, '')::uuid OR i.number = w.number);

-- name: InvoiceGetDocument :one
SELECT document
FROM invoices
WHERE tenant_id = @tenant_id AND id = @id;

-- name: InvoiceGetOperation :one
SELECT i.id, i.number, i.created_at, r.first_seen_at, r.expires_at
FROM invoices AS i
LEFT JOIN idempotency_records AS r
       ON r.tenant_id = i.tenant_id AND r.operation = @operation AND r.key = i.operation_key
WHERE i.tenant_id = @tenant_id AND i.operation_key = @key;

-- name: InvoiceList :many
-- Newest first, by (created_at, id); the page begins after the position (before_created_at, before_id).
SELECT id, document, created_at
FROM invoices
WHERE tenant_id = @tenant_id
  AND (sqlc.narg('source')::text IS NULL OR source = sqlc.narg('source'))
  AND (sqlc.narg('order_id')::text IS NULL OR order_id = sqlc.narg('order_id'))
  AND (sqlc.narg('role')::text IS NULL OR role = sqlc.narg('role'))
  AND (sqlc.narg('operation_key')::text IS NULL OR operation_key = sqlc.narg('operation_key'))
  AND (sqlc.narg('number')::text IS NULL OR number = sqlc.narg('number'))
  AND (sqlc.narg('status')::text IS NULL OR status = sqlc.narg('status'))
  AND (sqlc.narg('created_from')::timestamptz IS NULL OR created_at >= sqlc.narg('created_from'))
  AND (sqlc.narg('created_to')::timestamptz IS NULL OR created_at < sqlc.narg('created_to'))
  AND (sqlc.narg('before_id')::uuid IS NULL
       OR (created_at, id) < (sqlc.narg('before_created_at')::timestamptz, sqlc.narg('before_id')::uuid))
ORDER BY created_at DESC, id DESC
LIMIT @page_size;

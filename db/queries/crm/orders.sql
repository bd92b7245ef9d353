-- name: OrderSubmitBegin :one
-- The database's clock is the only one that counts (docs/architecture.md); read once, it is one for the whole call.
SELECT now()::timestamptz AS now, EXISTS (SELECT 1 FROM tenants WHERE id = @tenant_id) AS tenant_known;

-- name: OrderInsertMissing :many
-- Inserts in the order of the ids and waits for others who are inserting the same: see the locking argument at
-- (*submitTx).lockOrders.
INSERT INTO orders (tenant_id, source, order_id, version, status, content, content_hash)
SELECT @tenant_id, n.source, n.order_id, n.version, n.status, n.content, n.content_hash
FROM (SELECT unnest(@sources::text[])        AS source,
             unnest(@order_ids::text[])      AS order_id,
             unnest(@versions::bigint[])     AS version,
             unnest(@statuses::text[])       AS status,
             unnest(@contents::bytea[])      AS content,
             unnest(@content_hashes::bytea[]) AS content_hash) AS n
ORDER BY n.source COLLATE "C", n.order_id COLLATE "C"
ON CONFLICT ON CONSTRAINT orders_pkey DO NOTHING
RETURNING source, order_id;

-- name: OrderLock :many
SELECT o.source, o.order_id, o.version, o.status, o.content_hash
FROM orders AS o
JOIN (SELECT unnest(@sources::text[]) AS source, unnest(@order_ids::text[]) AS order_id) AS w
  ON o.source = w.source AND o.order_id = w.order_id
WHERE o.tenant_id = @tenant_id
ORDER BY o.source COLLATE "C", o.order_id COLLATE "C"
FOR NO KEY UPDATE OF o;

-- name: OrderUpdate :execrows
-- Under the lock of OrderLock. A version only rises.
UPDATE orders AS o
SET version = n.version, status = n.status, content = n.content, content_hash = n.content_hash, updated_at = now(),
    minimised_at = NULL
FROM (SELECT unnest(@sources::text[])        AS source,
             unnest(@order_ids::text[])      AS order_id,
             unnest(@versions::bigint[])     AS version,
             unnest(@statuses::text[])       AS status,
             unnest(@contents::bytea[])      AS content,
             unnest(@content_hashes::bytea[]) AS content_hash) AS n
WHERE o.tenant_id = @tenant_id AND o.source = n.source AND o.order_id = n.order_id AND o.version < n.version;

-- name: OrderGet :one
SELECT source, order_id, version, status, content, created_at, updated_at, minimised_at
FROM orders
WHERE tenant_id = @tenant_id AND source = @source AND order_id = @order_id;

-- name: InvoiceCounterTake :batchmany
-- Takes a block of numbers from the counter of each (tenant, prefix, year), or makes the counter. The roles come with their
-- default series; what a tenant has set in invoice_series wins. The counters' rows are locked in one order until the
-- transaction ends, so a rollback gives the numbers back and leaves no hole.
WITH wanted AS (
    SELECT w.tenant_id, w.role, w.year, w.count,
           coalesce(s.prefix, w.default_prefix) AS prefix,
           coalesce(s.digits, @default_digits::smallint) AS digits
    FROM (SELECT unnest(@tenant_ids::text[]) AS tenant_id,
                 unnest(@roles::text[]) AS role,
                 unnest(@years::integer[]) AS year,
                 unnest(@counts::bigint[]) AS count,
                 unnest(@default_prefixes::text[]) AS default_prefix) AS w
    LEFT JOIN invoice_series AS s ON s.tenant_id = w.tenant_id AND s.role = w.role
),
block AS (
    SELECT tenant_id, prefix, year, sum(count)::bigint AS count
    FROM wanted
    GROUP BY tenant_id, prefix, year
    ORDER BY tenant_id COLLATE "C", prefix COLLATE "C", year
),
taken AS (
    INSERT INTO invoice_counters AS c (tenant_id, prefix, year, last_number)
    SELECT tenant_id, prefix, year, count
    FROM block
    WHERE (SELECT set_config('lock_timeout', @lock_timeout::text, true)) IS NOT NULL
    ON CONFLICT ON CONSTRAINT invoice_counters_pkey DO UPDATE SET last_number = c.last_number + excluded.last_number
    RETURNING c.tenant_id, c.prefix, c.year, c.last_number
)
SELECT wanted.tenant_id::text AS tenant_id, wanted.role::text AS role, wanted.year::integer AS year, wanted.prefix::text AS prefix, wanted.digits::smallint AS digits,
       (taken.last_number - block.count + 1)::bigint AS first_number
FROM wanted
JOIN block ON block.tenant_id = wanted.tenant_id AND block.prefix = wanted.prefix AND block.year = wanted.year
JOIN taken ON taken.tenant_id = wanted.tenant_id AND taken.prefix = wanted.prefix AND taken.year = wanted.year;

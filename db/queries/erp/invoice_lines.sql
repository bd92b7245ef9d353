-- name: InvoiceLineInsert :batchmany
-- The last statement of issuing, so it also writes the outbox: a registration for each invoice at each target of the
-- tenant, where the transaction has found that there are some (TargetAnyOpen).
WITH lines AS (
INSERT INTO invoice_lines (
    invoice_id, position, sku, description, quantity, unit_price, discount, vat_rate, vat_category,
    exemption_reason, net)
SELECT unnest(@invoice_ids::uuid[]),
       unnest(@positions::integer[]),
       unnest(@skus::text[]),
       unnest(@descriptions::text[]),
       unnest(@quantities::text[])::numeric,
       unnest(@unit_prices::text[])::numeric,
       unnest(@discounts::text[])::numeric,
       nullif(unnest(@vat_rates::text[]), '')::numeric,
       unnest(@vat_categories::text[]),
       unnest(@exemption_reasons::text[]),
       unnest(@nets::text[])::numeric
)
INSERT INTO registrations (id, tenant_id, invoice_id, target_id, key, status, next_attempt_at, trace_context)
SELECT gen_random_uuid(), t.tenant_id, i.id, t.id, i.key, 'pending', now(), nullif(i.trace_context, '')
FROM targets AS t
JOIN (SELECT unnest(@registered_invoice_ids::uuid[]) AS id,
             unnest(@registered_tenant_ids::text[]) AS tenant_id,
             unnest(@registered_keys::text[]) AS key,
             unnest(@registered_trace_contexts::text[]) AS trace_context) AS i ON i.tenant_id = t.tenant_id
WHERE @registering::boolean AND t.disabled_at IS NULL
RETURNING id;

-- name: OrderBalanceAdd :batchmany
-- Locks the rows of all these orders until the transaction ends and adds to them. The orders come sorted and are
-- distinct. The lock is what makes the check of an order's limit, and of the credit notes of one invoice, safe.
INSERT INTO order_balances AS b (tenant_id, source, order_id, currency, invoiced_gross, credited_gross)
SELECT a.tenant_id, a.source, a.order_id, a.currency, a.invoiced_gross, a.credited_gross
FROM (SELECT unnest(@tenant_ids::text[]) AS tenant_id,
             unnest(@sources::text[]) AS source,
             unnest(@order_ids::text[]) AS order_id,
             unnest(@currencies::text[]) AS currency,
             unnest(@invoiced_gross::text[])::numeric AS invoiced_gross,
             unnest(@credited_gross::text[])::numeric AS credited_gross) AS a
WHERE (SELECT set_config('lock_timeout', @lock_timeout::text, true)) IS NOT NULL
ON CONFLICT ON CONSTRAINT order_balances_pkey DO UPDATE
SET invoiced_gross = b.invoiced_gross + excluded.invoiced_gross,
    credited_gross = b.credited_gross + excluded.credited_gross
RETURNING b.tenant_id, b.source, b.order_id, b.currency, b.invoiced_gross::text AS invoiced_gross;

-- The same with a statement for each table, all sent before the first answer is waited for.
\set k random(1, 9223372036854775806)
\set t random(0, :tenants - 1)
\startpipeline
BEGIN;
INSERT INTO idempotency_records (
    tenant_id, operation, key, fingerprint_version, fingerprint, status, answer_status, resource_id, completed_at, expires_at)
VALUES ('t' || (:t)::int, 'issue_invoice', 'P' || (:k)::bigint, 1, '\x8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4',
        'succeeded', 201, md5((:k)::text)::uuid, now(), now() + interval '90 days')
RETURNING first_seen_at, expires_at;
INSERT INTO order_balances AS b (tenant_id, source, order_id, currency, invoiced_gross, credited_gross)
VALUES ('t' || (:t)::int, 'bench', 'P' || (:k)::bigint, 'EUR', 297.26, 0)
ON CONFLICT ON CONSTRAINT order_balances_pkey DO UPDATE
SET invoiced_gross = b.invoiced_gross + excluded.invoiced_gross, credited_gross = b.credited_gross + excluded.credited_gross
RETURNING invoiced_gross;
INSERT INTO invoice_counters AS c (tenant_id, prefix, year, last_number)
VALUES ('t' || (:t)::int, 'INV', 2026, 1)
ON CONFLICT ON CONSTRAINT invoice_counters_pkey DO UPDATE SET last_number = c.last_number + 1
RETURNING last_number;
INSERT INTO invoices (
    id, tenant_id, number, series_prefix, series_year, series_number, status, source, order_id, role, sequence,
    operation_key, fingerprint_version, fingerprint, currency, issue_date, due_date,
    customer_name, customer_country, customer_vat_id, net, vat, gross, payable, corrects_id, document, created_at)
SELECT md5((:k)::text)::uuid, c.tenant_id, 'INV-2026-' || lpad(c.last_number::text, 6, '0'), 'INV', 2026, c.last_number, 'issued', 'bench',
       'P' || (:k)::bigint, 'final', 1, 'P' || (:k)::bigint, 1, '\x8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4', 'EUR',
       '2026-03-02', '2026-04-01', 'Nordwind Handels GmbH', 'DE', 'DE811907980', 249.80, 47.46, 297.26, 297.26, NULL, (:document)::bytea, now()
FROM invoice_counters AS c
WHERE c.tenant_id = 't' || (:t)::int AND c.prefix = 'INV' AND c.year = 2026;
INSERT INTO invoice_lines (
    invoice_id, position, sku, description, quantity, unit_price, discount, vat_rate, vat_category, exemption_reason, net)
VALUES (md5((:k)::text)::uuid, 1, 'KB-104', 'Keyboard, mechanical', 2, 89.90, 0, 19, 'S', '', 179.80),
       (md5((:k)::text)::uuid, 2, 'CB-2M', 'Cable USB-C, 2 m', 10, 7.35, 3.50, 19, 'S', '', 70.00);
INSERT INTO registrations (id, tenant_id, invoice_id, target_id, key, status, next_attempt_at)
SELECT gen_random_uuid(), t.tenant_id, md5((:k)::text)::uuid, t.id, 'P' || (:k)::bigint, 'pending', now()
FROM targets AS t
WHERE t.tenant_id = 't' || (:t)::int AND t.disabled_at IS NULL
RETURNING id;
COMMIT;
\endpipeline

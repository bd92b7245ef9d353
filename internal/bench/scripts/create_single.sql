-- What creating an invoice leaves behind, in one statement: reservation, balance of the order, number, invoice, its two
-- lines, and a registration for each target of the tenant.
\set k random(1, 9223372036854775806)
\set t random(0, :tenants - 1)
WITH i AS MATERIALIZED (
    SELECT gen_random_uuid() AS id, 't' || (:t)::int AS tenant, 'P' || (:k)::bigint AS order_id
), reserved AS (
    INSERT INTO idempotency_records (
        tenant_id, operation, key, fingerprint_version, fingerprint, status, answer_status, resource_id, completed_at, expires_at)
    SELECT tenant, 'issue_invoice', order_id, 1, '\x8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4', 'succeeded', 201, id,
           now(), now() + interval '90 days'
    FROM i
    RETURNING first_seen_at, expires_at
), balance AS (
    INSERT INTO order_balances AS b (tenant_id, source, order_id, currency, invoiced_gross, credited_gross)
    SELECT tenant, 'bench', order_id, 'EUR', 297.26, 0 FROM i
    ON CONFLICT ON CONSTRAINT order_balances_pkey DO UPDATE
    SET invoiced_gross = b.invoiced_gross + excluded.invoiced_gross, credited_gross = b.credited_gross + excluded.credited_gross
    RETURNING invoiced_gross
), taken AS (
    INSERT INTO invoice_counters AS c (tenant_id, prefix, year, last_number)
    SELECT tenant, 'INV', 2026, 1 FROM i
    ON CONFLICT ON CONSTRAINT invoice_counters_pkey DO UPDATE SET last_number = c.last_number + 1
    RETURNING last_number
), invoice AS (
    INSERT INTO invoices (
        id, tenant_id, number, series_prefix, series_year, series_number, status, source, order_id, role, sequence,
        operation_key, fingerprint_version, fingerprint, currency, issue_date, due_date,
        customer_name, customer_country, customer_vat_id, net, vat, gross, payable, corrects_id, document, created_at)
    SELECT i.id, i.tenant, 'INV-2026-' || lpad(taken.last_number::text, 6, '0'), 'INV', 2026, taken.last_number, 'issued', 'bench', i.order_id,
           'final', 1, i.order_id, 1, '\x8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4', 'EUR', '2026-03-02', '2026-04-01',
           'Nordwind Handels GmbH', 'DE', 'DE811907980', 249.80, 47.46, 297.26, 297.26, NULL, (:document)::bytea, now()
    FROM i, taken, balance, reserved
    RETURNING id
), lines AS (
    INSERT INTO invoice_lines (
        invoice_id, position, sku, description, quantity, unit_price, discount, vat_rate, vat_category, exemption_reason, net)
    SELECT invoice.id, l.*
    FROM invoice, (VALUES
        (1, 'KB-104', 'Keyboard, mechanical', 2, 89.90, 0, 19, 'S', '', 179.80),
        (2, 'CB-2M', 'Cable USB-C, 2 m', 10, 7.35, 3.50, 19, 'S', '', 70.00)) AS l
), registered AS (
    INSERT INTO registrations (id, tenant_id, invoice_id, target_id, key, status, next_attempt_at)
    SELECT gen_random_uuid(), t.tenant_id, invoice.id, t.id, i.order_id, 'pending', now()
    FROM targets AS t, invoice, i
    WHERE t.tenant_id = i.tenant AND t.disabled_at IS NULL
    RETURNING id
)
SELECT first_seen_at, expires_at, last_number, (SELECT count(*) FROM registered) FROM reserved, taken;

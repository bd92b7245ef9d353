-- name: InvoiceSeriesUpsert :exec
INSERT INTO invoice_series (tenant_id, role, prefix, digits)
VALUES (@tenant_id, @role, @prefix, @digits)
ON CONFLICT ON CONSTRAINT invoice_series_pkey DO UPDATE SET prefix = excluded.prefix, digits = excluded.digits;

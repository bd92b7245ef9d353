-- name: InvoiceLineInsert :exec
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
       unnest(@nets::text[])::numeric;

-- The stored answer of a key, and nothing else.
\set n random(0, :kept - 1)
\set t :n % :tenants
SELECT document FROM invoices WHERE operation_key = 'K' || (:n)::int AND tenant_id = 't' || (:t)::int;

-- Makes the database user of a service that is not to own its tables. An administrator runs it once for each service, when the role
-- invoicebridge_tenant is there (the owner's first "migrate up" makes it, or says who has to):
--
--   psql "$ADMIN_URL" -v service=erp_service -f deploy/postgres/create-service-user.sql
--   psql "$ADMIN_URL" -c '\password erp_service'
--
-- BYPASSRLS is for what a service does for all its tenants: jobs, sweeps, retention, log-in. An owner has that by itself. Work for a
-- tenant is held by the policies all the same, for it runs under invoicebridge_tenant, which bypasses none.
CREATE ROLE :"service" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS;
GRANT invoicebridge_tenant TO :"service";

-- Gives the user of create-service-user.sql what a service needs in its database, and nothing else. The owner of the tables, who also
-- runs the migrations, runs it in each service's database, after every "migrate up":
--
--   psql "$OWNER_URL" -v service=erp_service -f deploy/postgres/grant-service-user.sql
--
-- It may be run at any time, also while the service works.
BEGIN;
SELECT set_config('invoicebridge.service', :'service', true);

GRANT USAGE ON SCHEMA public TO :"service";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO :"service";
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO :"service";
-- What a later migration makes, from its commit on: the program before and the one after it work meanwhile.
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"service";
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO :"service";

-- Not all of it: what is written once stays as it is, and which version the database has, the migrations alone say.
DO $$
DECLARE
    service CONSTANT text := current_setting('invoicebridge.service');
    t       record;
BEGIN
    FOR t IN
        SELECT k.relname, k.rights
        FROM (VALUES
            ('audit_entries',   'UPDATE, DELETE'),
            ('invoices',        'UPDATE, DELETE'),
            ('invoice_lines',   'UPDATE, DELETE'),
            ('schema_version',  'INSERT, UPDATE, DELETE'),
            ('river_migration', 'INSERT, UPDATE, DELETE')
        ) AS k (relname, rights)
        WHERE to_regclass('public.' || k.relname) IS NOT NULL
    LOOP
        EXECUTE format('REVOKE %s ON public.%I FROM %I', t.rights, t.relname, service);
    END LOOP;
    -- The queue's indexes are made anew each night. Before PostgreSQL 17 only an owner can do that.
    IF current_setting('server_version_num')::integer >= 170000 AND to_regclass('public.river_job') IS NOT NULL THEN
        EXECUTE format('GRANT MAINTAIN ON public.river_job TO %I', service);
    END IF;
END $$;
COMMIT;

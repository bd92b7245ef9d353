package testdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/postgres"
)

// templateLock is the advisory lock under which test processes make templates, one at a time.
const templateLock = 7160_2026

// template returns the name of a migrated database to copy. Its name holds a hash of the migrations, so a server
// that lives longer than a run gives no stale schema.
func (s *testServer) template(ctx context.Context, schema postgres.Schema) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := s.templates[schema.Name]; ok {
		return name, nil
	}
	hash, err := schema.Fingerprint()
	if err != nil {
		return "", err
	}
	name := "template_" + schema.Name + "_" + hash
	if err := s.ensureTemplate(ctx, name, schema); err != nil {
		return "", err
	}
	s.templates[schema.Name] = name
	return name, nil
}

// ensureTemplate makes the database under another name and renames it when it is complete, so what a killed
// process leaves is never copied. Its connection is of its own: the lock ends with it, in every case.
func (s *testServer) ensureTemplate(ctx context.Context, name string, schema postgres.Schema) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return fmt.Errorf("take the template lock: %w", err)
	}
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err != nil || there {
		return err
	}
	draft := name + "_draft"
	if err := run(ctx, conn,
		"DROP DATABASE IF EXISTS "+quote(draft)+" WITH (FORCE)",
		"CREATE DATABASE "+quote(draft)+" TEMPLATE template0",
	); err != nil {
		return err
	}
	if _, err := postgres.Migrate(ctx, withDatabase(s.dsn, draft), schema, nil); err != nil {
		return err
	}
	// A database with a connection can't be renamed or copied, and a closed connection may linger.
	return run(ctx, conn,
		"ALTER DATABASE "+quote(draft)+" ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '"+draft+"'",
		"ALTER DATABASE "+quote(draft)+" RENAME TO "+quote(name),
	)
}

func run(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

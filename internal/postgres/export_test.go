package postgres

import (
	"testing"
	"testing/fstest"
)

// RefusePooler is for the test with a stand-in of a pooler.
var RefusePooler = refusePooler

// VersionTable is for tests that put a database into a state no binary of this test makes.
const VersionTable = versionTable

// HeldSchema has a second version that waits until nobody has the advisory lock 1.
func HeldSchema() Schema {
	return Schema{Name: "shop", MigrateCommand: "shop migrate up", FS: fstest.MapFS{
		"00001_step.sql": {Data: []byte("-- +goose Up\nCREATE TABLE one (id int);\n")},
		"00002_step.sql": {Data: []byte("-- +goose Up\nCREATE TABLE two AS SELECT pg_advisory_xact_lock_shared(1)::text;\n")},
	}}
}

// StartMigrator migrates a database to HeldSchema in a process of its own, to be killed.
func StartMigrator(t *testing.T, dsn string) (kill func()) {
	t.Helper()
	p := startProgram(t, "migrator", dsn, owner{})
	return func() { p.kill(t) }
}

// Eventually waits for what other sessions do.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	eventually(t, what, done)
}

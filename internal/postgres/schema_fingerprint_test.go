package postgres_test

import (
	"testing"

	"invoicebridge/internal/postgres"
)

func TestFingerprintChangesWithWhatMakesTheSchema(t *testing.T) {
	t.Parallel()
	fingerprint := func(s postgres.Schema) string {
		t.Helper()
		got, err := s.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	withRiver := schemaOf("CREATE TABLE one (id int)")
	withRiver.River = true
	seen := map[string]string{}
	for name, s := range map[string]postgres.Schema{
		"one table":            schemaOf("CREATE TABLE one (id int)"),
		"another column type":  schemaOf("CREATE TABLE one (id bigint)"),
		"one version more":     schemaOf("CREATE TABLE one (id int)", "CREATE TABLE two (id int)"),
		"River's tables, too":  withRiver,
		"nothing but a select": schemaOf("SELECT 1"),
	} {
		got := fingerprint(s)
		if again := fingerprint(s); again != got {
			t.Errorf("%s: %s, then %s", name, got, again)
		}
		if other, there := seen[got]; there {
			t.Errorf("%q and %q have one fingerprint", name, other)
		}
		seen[got] = name
	}
}

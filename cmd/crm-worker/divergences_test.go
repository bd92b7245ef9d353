package main

import (
	"strings"
	"testing"

	"invoicebridge/internal/testdb"
)

func TestADivergenceIsAcceptedAndClosedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	exec(t, pool, `INSERT INTO divergences (tenant_id, kind, owner, subject, ours, theirs, action, first_seen_at, last_seen_at)
		VALUES ('acme', 'missing_in_crm', 'crm', 'foreign', '', '', '', now(), now())`)
	id := strings.Fields(strings.Split(must(t, "divergences", "list", "--tenant=acme", database), "\n")[1])[0]
	decide := func(verb string) []string {
		return []string{"divergences", verb, id, "--tenant=acme", "--actor=ann", "--reason=made by hand", database}
	}
	if out := must(t, decide("accept")...); !strings.Contains(out, `"decided_by": "ann"`) {
		t.Errorf("accept says %s", out)
	}
	if _, err := command(t, decide("accept")...); err == nil || !strings.Contains(err.Error(), "accepted already") {
		t.Errorf("the second time: %v", err)
	}
	if out := must(t, decide("close")...); strings.Contains(out, `"resolved_at": null`) {
		t.Errorf("close says %s", out)
	}
	if n := count(t, pool, "audit_entries WHERE actor = 'ann' AND action IN ('divergence.accept', 'divergence.close') AND subject = '"+id+"'"); n != 2 {
		t.Errorf("%d audit entries", n)
	}
}

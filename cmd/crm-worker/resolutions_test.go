package main

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

func TestAResolutionIsProposedInTheNameOfAPersonWhoCanNotApproveIt(t *testing.T) {
	t.Parallel()
	pool, keys, database := stuck(t, 1)
	for name, role := range map[string]string{"ann": "operator", "vic": "viewer", "eve": "operator"} {
		must(t, "account", "create", "--tenant=acme", "--name="+name, "--display-name="+name, "--role="+role, "--no-password", database)
	}
	must(t, "account", "disable", "eve", database)
	must(t, "tenant", "create", "other", "--name=Other", database)
	must(t, "account", "create", "--tenant=other", "--name=oli", "--display-name=Oli", "--role=admin", "--no-password", database)
	invoice := uuid.New().String()
	propose := func(account string, more ...string) []string {
		return append([]string{
			"resolutions", "propose", keys[0], "--tenant=acme", "--account=" + account, "--verdict=applied", "--evidence=seen in the books",
			"--reason=the answer was lost", database,
		}, more...)
	}
	whole := []string{"--invoice-id=" + invoice, "--invoice-number=INV-7"}
	for account, want := range map[string]string{"vic": "viewer", "eve": "disabled", "oli": "no such account", "nobody": "no such account"} {
		if _, err := command(t, propose(account, whole...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("in the name of %s: %v", account, err)
		}
	}
	if _, err := command(t, propose("ann")...); err == nil || !strings.Contains(err.Error(), "/invoice: ") {
		t.Errorf("without the invoice: %v", err)
	}
	var r crm.Resolution
	if err := json.Unmarshal([]byte(must(t, propose("ann", whole...)...)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Status != crm.ResolutionOpen || r.ProposedBy != "ann" || r.Invoice == nil || r.Invoice.Number != "INV-7" {
		t.Errorf("proposed is %+v", r)
	}
	if n := count(t, pool, "audit_entries WHERE actor = 'ann' AND via = 'cli' AND account_id IS NOT NULL AND action = 'resolution.propose'"); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	for _, out := range []string{
		must(t, "resolutions", "list", "--tenant=acme", "--status=open", database), must(t, "resolutions", "show", r.ID.String(), "--tenant=acme", database),
	} {
		if !strings.Contains(out, keys[0]) || !strings.Contains(out, "INV-7") {
			t.Errorf("the proposal is not in\n%s", out)
		}
	}
	// The same person, now logged in.
	ann, err := auth.NewAdmin(crmstore.New(pool)).GetAccount(t.Context(), "acme", "ann")
	if err != nil {
		t.Fatal(err)
	}
	_, err = crm.NewService(pool, nil, crm.Options{}).ApproveResolution(t.Context(), "acme", r.ID, audit.By{Actor: "ann", Account: ann.ID, Reason: "so it is", Via: audit.ViaConsole})
	if p := problem.As(err); p == nil || p.Type != problem.Forbidden {
		t.Errorf("who proposed it approves it: %v", err)
	}

	must(t, "account", "create", "--tenant=acme", "--name=ben", "--display-name=Ben", "--role=operator", "--no-password", database)
	withdraw := []string{"resolutions", "withdraw", r.ID.String(), "--tenant=acme", "--reason=wrong", database}
	if _, err := command(t, append(withdraw, "--account=ben")...); err == nil || !strings.Contains(err.Error(), "Only who proposed it") {
		t.Errorf("somebody else withdraws it: %v", err)
	}
	if out := must(t, append(withdraw, "--account=ann")...); !strings.Contains(out, `"status": "withdrawn"`) {
		t.Errorf("withdraw says %s", out)
	}
}

func TestThereIsNoCommandThatApproves(t *testing.T) {
	t.Parallel()
	if out := must(t, "resolutions", "--help"); !strings.Contains(out, "second person") || strings.Contains(out, "resolutions approve") {
		t.Errorf("help says\n%s", out)
	}
}

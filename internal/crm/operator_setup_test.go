package crm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

// Two people and a machine.
var (
	ann     = audit.By{Actor: "ann", Reason: "seen to it", Via: audit.ViaConsole, Account: uuid.MustParse("019cae2b-0000-7000-8000-000000000001")}
	ben     = audit.By{Actor: "ben", Reason: "looked at it, too", Via: audit.ViaConsole, Account: uuid.MustParse("019cae2b-0000-7000-8000-000000000002")}
	machine = audit.By{Actor: "token-1", Reason: "by schedule", Via: audit.ViaAPI}
)

// setupOperator is both sides with a CRM side that has all it needs for the operator's actions.
func setupOperator(t *testing.T) *bothSides {
	t.Helper()
	s := setupBothSides(t)
	s.service = s.newService()
	return s
}

// newService is one more, as another process would be.
func (s *bothSides) newService() *crm.Service {
	s.t.Helper()
	inserter := s.inserter()
	return crm.NewService(s.crm, inserter, crm.Options{
		Actions: inserter, ERP: s.client, Token: func(string) string { return s.reader },
	})
}

func (s *bothSides) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.crm.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

// unsure lets one attempt at an operation have been lost, so that nobody knows what became of it, and an operator was told.
func (s *bothSides) unsure(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		s.exec(`UPDATE operations SET status = 'unknown', attempt = 1, first_sent_at = now(), reason = 'no_answer', flagged_at = now(),
		        next_attempt_at = now() + interval '1 hour' WHERE key = $1`, key)
		s.exec(`INSERT INTO attempts (operation_id, number, worker, outcome, finished_at)
		        SELECT id, 1, 'test', 'lost', now() FROM operations WHERE key = $1`, key)
	}
}

// refused wants a problem of a type, whose text says something.
func refused(t *testing.T, err error, want problem.Type, says string) {
	t.Helper()
	p := problem.As(err)
	if p == nil || p.Type != want || !strings.Contains(p.Detail, says) {
		t.Errorf("error is %v, want %s that says %q", err, want, says)
	}
}

// audited holds how often an action on a subject is in the audit, with who and why.
func (s *bothSides) audited(want int, action, subject string) {
	s.t.Helper()
	if n := s.count(s.crm, "audit_entries WHERE action = '"+action+"' AND subject = '"+subject+"' AND actor <> '' AND reason <> ''"); n != want {
		s.t.Errorf("%d entries of %s %s in the audit, want %d", n, action, subject, want)
	}
}

// available are the actions that an operation's view offers.
func (s *bothSides) available(key string) string {
	s.t.Helper()
	view, err := s.service.ViewOperation(context.Background(), deliverTenant, key)
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, a := range view.Actions {
		if a.Available == (a.Why != "") {
			s.t.Errorf("%s is available: %v, because %q", a.Name, a.Available, a.Why)
		}
		if a.Available {
			names = append(names, string(a.Name))
		}
	}
	return strings.Join(names, " ")
}

func (s *bothSides) jobsOf(key string) int {
	s.t.Helper()
	return s.count(s.crm, "river_job WHERE args->>'operation_id' = '"+s.id(key).String()+"' AND state IN ('available', 'scheduled')")
}

package invoice_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

func (b *bench) reconciler() *invoice.Reconciler {
	return invoice.NewReconciler(b.reg, invoice.ReconcilerOptions{Batch: 2})
}

func (b *bench) reconciles() invoice.Reconciliation {
	b.t.Helper()
	report, err := b.reconciler().Run(b.t.Context(), regTenant, time.Time{})
	if err != nil {
		b.t.Fatalf("reconcile: %v", err)
	}
	return report
}

// finds holds the divergences against what is wanted: kind, whether it is resolved, and a part of what is told.
func (b *bench) finds(want ...[3]string) {
	b.t.Helper()
	rows, err := b.pool.Query(context.Background(), `
		SELECT kind, CASE WHEN resolved_at IS NULL THEN 'open' ELSE 'resolved' END, ours || ' | ' || theirs || ' | ' || action
		FROM divergences ORDER BY id`)
	if err != nil {
		b.t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d [3]string, err error) {
		return d, row.Scan(&d[0], &d[1], &d[2])
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if !slices.EqualFunc(want, got, func(w, g [3]string) bool { return w[0] == g[0] && w[1] == g[1] && strings.Contains(g[2], w[2]) }) {
		b.t.Errorf("divergences (-want +got)\n%s", cmp.Diff(want, got))
	}
}

// plant changes rows behind everybody's back: no trigger speaks against it.
func (b *bench) plant(sql string, args ...any) {
	b.t.Helper()
	err := pgx.BeginFunc(context.Background(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), "SET LOCAL session_replication_role = replica"); err != nil {
			return err
		}
		_, err := tx.Exec(context.Background(), sql, args...)
		return err
	})
	if err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) unlearn() {
	b.t.Helper()
	b.plant(`UPDATE registrations SET status = 'unknown', reference = '', finished_at = NULL, next_attempt_at = now() + interval '1 hour'`)
}

// registered issues an invoice and registers it.
func (b *bench) registered() {
	b.t.Helper()
	b.issue()
	if !b.try().Done {
		b.t.Fatalf("not registered: %+v", b.state())
	}
}

func TestEqualRegistrationsHaveNoDivergence(t *testing.T) {
	for _, kind := range []string{einvoice.Kind, ledger.Kind} {
		t.Run(kind, func(t *testing.T) {
			b := setupRegister(t, kind, locatable)
			b.registered()
			if report := b.reconciles(); report.Compared != 1 || report.Found != 0 {
				t.Errorf("report is %+v", report)
			}
			b.finds()
			b.wantEffects(1)
		})
	}
}

func TestWhatHasLandedAndNobodyKnewIsSettled(t *testing.T) {
	for _, kind := range []string{einvoice.Kind, ledger.Kind} {
		t.Run(kind, func(t *testing.T) {
			b := setupRegister(t, kind, locatable)
			b.registered()
			reference := b.state().Reference
			b.unlearn()
			if report := b.reconciles(); report.Repaired != 1 || report.Found != 1 {
				t.Errorf("report is %+v", report)
			}
			b.want(state{Status: "succeeded", Reference: reference})
			b.finds([3]string{"registered_but_unknown", "resolved", "succeeded with " + reference})
			if report := b.reconciles(); report.Found != 0 {
				t.Errorf("second report is %+v", report)
			}
			b.wantEffects(1)
		})
	}
}

// A worker that died between sending and hearing the answer.
func TestWhatADeadWorkerHasLandedIsSettled(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.registered()
	b.plant(`UPDATE registrations SET status = 'processing', reference = '', finished_at = NULL, lease_until = now() - interval '1 minute'`)
	b.reconciles()
	b.finds([3]string{"registered_but_unknown", "resolved", "succeeded with "})
	b.wantEffects(1)
}

func TestWhatIsUnderWayIsLeftAlone(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.registered()
	b.plant(`UPDATE registrations SET status = 'processing', reference = '', finished_at = NULL, lease_until = now() + interval '1 minute'`)
	if report := b.reconciles(); report.Compared != 0 {
		t.Errorf("report is %+v", report)
	}
	b.want(state{Status: "processing"})
}

func TestARegistrationThatTheTargetHasTwiceIsTold(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.registered()
	second, err := b.opts.Kinds.Kinds[ledger.Kind].Open(b.url+"/"+ledger.Kind, target.NewSecret(regToken))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Close)
	var number string
	var document []byte
	b.scan(&number, "SELECT number FROM invoices")
	b.scan(&document, "SELECT document FROM invoices")
	if sent := second.Send(t.Context(), target.Submission{Key: regKey, Reference: regKey, Number: number, Document: document}); sent.Outcome != target.Accepted {
		t.Fatalf("the second sending: %+v", sent)
	}
	b.reconciles()
	b.finds([3]string{"registered_twice", "open", "more than the one"})
	if report := b.reconciles(); report.Found != 0 {
		t.Errorf("second report is %+v", report)
	}
}

func TestWhatIsRegisteredHereAndNotThereIsTold(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.plant(`UPDATE registrations SET status = 'succeeded', reference = 'REF-0', finished_at = now(), next_attempt_at = NULL,
		attempt = 1, tried_since = now(), first_sent_at = now(), last_sent_at = now()`)
	b.reconciles() // it may be visible later
	b.finds()
	b.pass(2 * settle)
	b.reconciles()
	b.finds([3]string{"status_differs", "open", "reference REF-0 | absent"})
}

func TestWhatFailedHereAndHasLandedIsTold(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.registered()
	reference := b.state().Reference
	b.plant("UPDATE registrations SET status = 'failed', reason = 'rejected', reference = ''")
	b.reconciles()
	b.finds([3]string{"status_differs", "open", "is failed (rejected) | landed, reference " + reference})
	b.plant("UPDATE registrations SET status = 'succeeded', reason = '', reference = $1", reference)
	b.reconciles()
	b.finds([3]string{"status_differs", "resolved", "gone"})
}

func TestAnotherReferenceThanOursIsTold(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.registered()
	b.plant("UPDATE registrations SET reference = 'REF-0'")
	b.reconciles()
	b.finds([3]string{"status_differs", "open", "reference REF-0 | landed, reference "})
}

func TestWhatIsHeldTooLongIsToldUntilItIsDone(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.script(targetsim.Held)
	b.try()
	b.want(state{Status: "unknown", Reason: "held"})
	b.reconciles()
	b.finds()
	b.plant("UPDATE registrations SET tried_since = tried_since - interval '5 hours'")
	b.reconciles()
	b.finds([3]string{"held_too_long", "open", "for 5h0m"})
	b.plant("UPDATE registrations SET tried_since = now()")
	b.reconciles()
	b.finds([3]string{"held_too_long", "resolved", "gone"})
	b.wantEffects(1)
}

// Nothing is ever sent, and what can't be asked is not guessed at.
func TestATargetThatCannotBeAskedIsLeftOut(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, onlyKeyed)
	b.registered()
	b.unlearn()
	before := len(b.sim.Requests(""))
	if report := b.reconciles(); report.Compared != 0 || len(b.sim.Requests("")) != before {
		t.Errorf("report is %+v", report)
	}
	b.finds()
}

func TestATargetWithoutAnAnswerIsLeftToTheNextRun(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.registered()
	b.plant("UPDATE registrations SET reference = 'REF-0'")
	b.opts.Credential = func(string) (target.Secret, error) { return target.Secret{}, errors.New("no such variable") }
	b.reg = b.registrar()
	if report := b.reconciles(); report.Unanswered != 1 || report.Found != 0 {
		t.Errorf("report is %+v", report)
	}
	b.opts.Credential = func(string) (target.Secret, error) { return target.NewSecret(regToken), nil }
	b.reg = b.registrar()
	b.script(targetsim.LookupError)
	if report := b.reconciles(); report.Unanswered != 1 || report.Found != 0 {
		t.Errorf("report is %+v", report)
	}
	if report := b.reconciles(); report.Unanswered != 0 || report.Found != 1 {
		t.Errorf("report is %+v", report)
	}
	b.finds([3]string{"status_differs", "open", "REF-0"})
}

// The sender's question and the run's are one to the target: each would have it asked before it wants to be.
func TestATargetThatAskedToComeBackLaterIsNotAskedBefore(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.script(targetsim.Busy) // for two minutes
	b.try()
	b.want(state{Status: "unknown", Reason: "waiting"})
	if report := b.reconciles(); report.Unanswered != 1 || report.Compared != 0 {
		t.Errorf("report is %+v", report)
	}
	b.wantAttempts("send wait")
	b.pass(3 * time.Minute)
	if report := b.reconciles(); report.Unanswered != 0 || report.Compared != 1 {
		t.Errorf("report is %+v", report)
	}
	b.wantAttempts("send wait", "locate absent")
}

func TestWhatWasSettledByHandWhileItsTargetWasBusyIsComparedAsUsual(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.script(targetsim.Busy)
	b.try()
	err := b.service.ResolveRegistration(t.Context(), regTenant, b.id,
		invoice.Resolution{Status: invoice.RegistrationFailed, Evidence: "e"}, audit.By{Actor: "a", Reason: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if report := b.reconciles(); report.Compared != 1 || report.Unanswered != 0 {
		t.Errorf("report is %+v", report)
	}
}

func TestATargetRunThatWasCutOffGoesOn(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	for _, order := range []string{"1", "2", "3", "4", "5"} {
		b.issueAs("op-"+order, "SO-"+order)
	}
	rows, err := b.pool.Query(t.Context(), "SELECT id FROM registrations")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		b.id = id
		b.try()
	}
	b.plant("UPDATE registrations SET reference = 'REF-0'")
	ctx, kill := context.WithCancel(t.Context())
	asked := 0
	b.reg = b.hookedRegistrar(func() {
		if asked++; asked == 3 { // in the second batch
			kill()
		}
	}, nil)
	if _, err := b.reconciler().Run(ctx, regTenant, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("cut off: %v", err)
	}
	b.reg = b.hookedRegistrar(func() { asked++ }, nil)
	report := b.reconciles()
	if report.Compared != 5 || report.Found != 5 || asked != 6 { // the cut off batch is asked for again
		t.Errorf("report is %+v, %d questions", report, asked)
	}
	if n := b.count("reconciliation_runs"); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func TestDivergencesAtTargetsAreListedNewestFirst(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.exec("INSERT INTO tenants (id, name) VALUES ('other', 'Other')")
	b.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject, first_seen_at, resolved_at) VALUES
		('acme', 'registered_twice', 'target', 'a', now() - interval '2 hours', NULL), ('acme', 'held_too_long', 'target', 'b', now(), NULL),
		('acme', 'held_too_long', 'target', 'c', now() - interval '1 hour', now()), ('other', 'held_too_long', 'target', 'd', now(), NULL)`)
	for _, c := range []struct {
		kind     string
		resolved *bool
		limit    int
		want     string
	}{
		{"", nil, 0, "b c a"}, {"", new(false), 0, "b a"}, {"held_too_long", new(true), 0, "c"}, {"", nil, 1, "b"},
	} {
		list, err := b.service.ListDivergences(t.Context(), regTenant, c.kind, c.resolved, c.limit)
		var subjects []string
		for _, d := range list {
			subjects = append(subjects, d.Subject)
		}
		if got := strings.Join(subjects, " "); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	for _, wrong := range []struct {
		kind  string
		limit int
	}{{"nonsense", 0}, {"", -1}, {"", 201}} {
		if _, err := b.service.ListDivergences(t.Context(), regTenant, wrong.kind, nil, wrong.limit); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// The end of any run is where the next one looks back from.
func TestALaterWindowLeavesNoGapBetweenRuns(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.reconciles()
	b.plant(`UPDATE reconciliation_runs SET window_from = window_from - interval '10 days',
		window_to = window_to - interval '10 days', finished_at = finished_at - interval '10 days'`)
	b.registered()
	b.plant("UPDATE registrations SET reference = 'another', created_at = now() - interval '5 days'")
	if _, err := b.reconciler().Run(t.Context(), regTenant, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.reconciles()
	b.finds([3]string{"status_differs", "open", "another"})
}

func TestATenantThatIsNotThereIsToldSo(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	if _, err := b.reconciler().Run(t.Context(), "nobody", time.Time{}); !problem.Is(err, problem.NotFound) {
		t.Errorf("error is %v", err)
	}
}

// CASES M2.
func TestNoRegistrationHasATimeThatNobodyCanTell(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.registered()
	for _, at := range []string{"infinity", "-infinity", "10000-01-01", "0001-01-01 BC"} {
		for _, column := range []string{
			"registrations SET created_at", "registrations SET finished_at", "registrations SET flagged_at", "registrations SET tried_since",
			"registrations SET first_sent_at", "registrations SET last_sent_at", "registration_attempts SET started_at",
			"registration_attempts SET finished_at", "registrations SET status = 'unknown', finished_at = NULL, next_attempt_at",
			"registrations SET status = 'processing', finished_at = NULL, lease_until",
		} {
			err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "SET LOCAL session_replication_role = replica"); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), "UPDATE "+column+" = '"+at+"'")
				return err
			})
			if err == nil || !strings.Contains(err.Error(), "_tellable") {
				t.Errorf("%s = %s: %v", column, at, err)
			}
		}
	}
}

func TestRunsOfLongAgoAreForgottenSaveTheNewest(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.reconciles()
	b.plant("UPDATE reconciliation_runs SET window_to = window_to - interval '40 days', window_from = '2000-01-01', finished_at = finished_at - interval '40 days'")
	for _, want := range []int{2, 2, 3} { // the second of these forgets, as there is a newer one
		b.reconciles()
		if n := b.count("reconciliation_runs"); n != want {
			t.Errorf("%d runs, want %d", n, want)
		}
	}
}

package processtest

import (
	"net/http"
	"testing"

	"invoicebridge/internal/testdb"
	"invoicebridge/internal/wire"
)

// CASES J3, for the buttons. There the ERP holds a call for 30 s, with a limit of 1 s, and replay is pressed meanwhile. Here
// what ends the hold is an event, and the limits are small: the call is held for longer than the attempt's limit (1 s), than
// the operation's total time (1 s), after which it is left to people, and than the replay and its own attempt take.
func TestReplayPressedFromAllSidesWhileTheERPHoldsTheCallEndsInOneDelivery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		wire  wire.Fault // of the first attempt's connection
		locks bool       // the hold is inside the ERP's transaction
	}{
		{name: "before the ERP has it", wire: wire.Fault{Action: wire.Hold, Direction: wire.ToServer}},
		{name: "inside the ERP's transaction", locks: true},
		{name: "after the ERP's commit", wire: wire.Fault{Action: wire.Hold, Direction: wire.ToClient}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newHeldCall(t, c.wire, c.locks)
			key := w.heldAttempt()

			w.pressFromAllSides(key)
			rounds := 1
			if c.locks { // the replay's attempt meets the first one at the ERP, and is given up, too
				testdb.Await(t, "the replay's attempt is given up", func() bool { return w.leftToPeople(2) })
				w.release()
				w.answered(2)
				w.pressFromAllSides(key)
				rounds++
			}
			testdb.Await(t, "the operation is settled", w.settled)

			if done := wantTold(t, w.operator.replay(key)); done != 0 {
				t.Errorf("what has succeeded was replayed %d times", done)
			}
			if !c.locks {
				w.release()
				w.answered(2) // also the call that was held has been answered by the ERP, late
			}
			testdb.Await(t, "the invoice is registered", w.registered)
			w.wantInvoices(1)
			w.wantDelivered(1)
			if sum := w.ledger.effects(); sum.Effects != 1 || sum.Duplicates != 0 {
				t.Errorf("the ledger has %+v, want one entry", sum)
			}
			w.wantOneKey(1 + rounds)
			if n := number(t, w.crm, `SELECT count(*) FROM audit_entries WHERE action = 'operation.replay' AND subject = $1`, key); n != rounds {
				t.Errorf("%d replays are in the audit, want %d", n, rounds)
			}
			for _, page := range []string{"/operations/" + key, "/replays"} {
				if got := w.operator.get(page); got.status != http.StatusOK {
					t.Errorf("%s is answered %d %v", page, got.status, got.err)
				}
			}
		})
	}
}

// heldCall is a world in which the first attempt's call is held.
type heldCall struct {
	*world
	ledger   *targetProgram
	operator *operator
	rec      *recorder
	base     string        // of the worker
	held     func() bool   // whether the call is where it is held
	release  func()        // ends the hold
	got      chan answer   // what the ERP said, in that order
	first    chan struct{} // takes the connection that is held
}

func newHeldCall(t *testing.T, fault wire.Fault, locks bool) *heldCall {
	t.Helper()
	w := &heldCall{world: newWorld(t), got: make(chan answer, 100), first: make(chan struct{}, 1)}
	w.ledger = w.serveTargets()
	w.target(w.ledger)
	erp := w.serveERP("TARGET_TOKEN=" + targetToken)
	w.rec = record(t, erp.URL(), func(to http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method != http.MethodPost {
			to.Header().Set("Connection", "close") // the attempt's connection is to be its own
			return false
		}
		// Not within the caller's time: the ERP goes on when the caller has given up.
		got := w.send(erp.URL(), r.URL.Path, w.erpToken, r.Header.Get("Idempotency-Key"), string(body))
		w.got <- got
		to.WriteHeader(got.status)
		_, _ = to.Write([]byte(got.body))
		return true
	})
	at, end := make(chan struct{}), make(chan struct{})
	fault.After, fault.Reached = end, func() { close(at) }
	proxy, err := wire.Start(t.Context(), wire.Config{
		Upstreams: []string{parse(t, w.rec.URL).Host},
		Plan: func(int) wire.Fault {
			select {
			case <-w.first:
				return fault
			default:
				return wire.Fault{}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	w.held, w.release = func() bool { return isClosed(at) }, func() { close(end) }
	if locks {
		w.release = holdInvoiceInserts(t, w.erp)
		w.held = func() bool { return heldInserts(t, w.erp) > 0 }
	}
	w.base = w.serveCRM("http://"+proxy.Addr(), "ATTEMPT_TIMEOUT=1s", "TOTAL_TIME=1s").URL()
	w.operator = w.newOperator(w.base)
	testdb.Await(t, "the reconciliation that begins with the service is over: it would settle the operation", func() bool {
		return number(t, w.crm, `SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NOT NULL`) > 0
	})
	if !locks {
		w.first <- struct{}{}
	}
	return w
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// heldAttempt has the first attempt made, held, and given up; nobody knows what becomes of it.
func (w *heldCall) heldAttempt() (key string) {
	w.t.Helper()
	w.submit(w.base, "SO-1001")
	testdb.Await(w.t, "the call is held", w.held)
	testdb.Await(w.t, "the attempt is given up, and the operation left to people", func() bool { return w.leftToPeople(1) })
	if err := w.crm.QueryRow(w.t.Context(), `SELECT key FROM operations`).Scan(&key); err != nil {
		w.t.Fatal(err)
	}
	return key
}

func (w *heldCall) leftToPeople(attempts int) bool {
	return number(w.t, w.crm, `SELECT count(*) FROM operations WHERE status = 'unknown' AND flagged_at IS NOT NULL AND attempt = $1`, attempts) == 1
}

// pressFromAllSides has a replay of many, an endpoint and a button hand the operation back, all at the same moment. One
// of the three does, and the others say why they don't.
func (w *heldCall) pressFromAllSides(key string) {
	w.t.Helper()
	release := w.holdOperation(key)
	defer release()
	run := w.operator.startReplays(1)
	told := make(chan []answer, 1)
	go func() { told <- w.operator.replay(key) }()
	w.awaitReplaysWaiting(3)
	release()
	done := wantTold(w.t, <-told)
	testdb.Await(w.t, "the replay of many has ended", func() bool { return w.operator.run(run).Waiting == 0 })
	r := w.operator.run(run)
	if r.Total != 1 || done+r.Queued != 1 || r.Queued+r.Refused != 1 {
		w.t.Errorf("replayed were %d by hand, and in bulk %+v; want one", done, r)
	}
}

// answered waits until the ERP has given so many answers, and holds them to one invoice: the first of its kind and its repeats.
func (w *heldCall) answered(want int) {
	w.t.Helper()
	testdb.Await(w.t, "the ERP has answered", func() bool { return len(w.got) >= want })
	first, body := 0, ""
	for range want {
		got := <-w.got
		switch {
		case got.err != nil || got.status != http.StatusCreated:
			w.t.Errorf("the ERP answers %d %v %s", got.status, got.err, got.body)
		case body != "" && got.body != body:
			w.t.Errorf("the ERP's answers differ:\n%s\n%s", body, got.body)
		case got.header.Get("Idempotent-Replayed") == "":
			first++
		}
		body = got.body
	}
	if first != 1 {
		w.t.Errorf("%d answers say they are the first", first)
	}
}

// wantOneKey holds what reached the ERP to one key with one body, and to the attempts on record.
func (w *heldCall) wantOneKey(attempts int) {
	w.t.Helper()
	first := w.rec.next(w.t)
	for range attempts - 1 {
		if again := w.rec.next(w.t); again != first {
			w.t.Errorf("sent was\n%+v\nand then\n%+v", first, again)
		}
	}
	if len(w.rec.sent) != 0 {
		w.t.Errorf("%d requests more than attempts", len(w.rec.sent))
	}
	if n := number(w.t, w.crm, `SELECT count(*) FROM attempts`); n != attempts {
		w.t.Errorf("%d attempts are on record, want %d", n, attempts)
	}
}

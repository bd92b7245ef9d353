package crm_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/problem"
)

// Each line of the decision table once more, from a real answer to the database.
func TestEachAnswerLeadsToItsState(t *testing.T) {
	d := setupDelivery(t)
	d.client.AttemptTimeout = time.Second
	plain := func(status int) func(*erpsim.Call) {
		return func(c *erpsim.Call) { c.Send(erpsim.Answer{Status: status, Type: "text/plain", Body: []byte("no")}) }
	}
	refuse := func(status int, kind problem.Type) func(*erpsim.Call) {
		return func(c *erpsim.Call) { c.Refuse(status, kind) }
	}
	taken := func(content string) func(*erpsim.Call) {
		return func(c *erpsim.Call) {
			c.Send(erpsim.Answer{Status: http.StatusConflict, Type: "application/problem+json", Body: []byte(
				`{"type":"/problems/already-invoiced","detail":"taken","invoice":{"id":"018f0000-0000-7000-8000-000000000001",` +
					`"number":"INV-7","operation_key":"other"},"same_content":` + content + `}`)})
		}
	}
	for _, tc := range []struct {
		name                    string
		handle                  func(*erpsim.Call)
		status, reason, outcome string
		number                  string
	}{
		{"created", func(c *erpsim.Call) { c.Send(c.Commit()) }, "succeeded", "", "delivered", "INV-2026-000001"},
		{"replayed", func(c *erpsim.Call) { c.Commit(); c.Send(c.Commit()) }, "succeeded", "", "replayed", "INV-2026-000002"},
		{"reset", (*erpsim.Call).Reset, "unknown", "no_answer", "lost", ""},
		{"EOF", func(c *erpsim.Call) { c.Raw("") }, "unknown", "no_answer", "lost", ""},
		{"half a status line", func(c *erpsim.Call) { c.Raw("HTTP/1.1 20") }, "unknown", "no_answer", "lost", ""},
		{"not HTTP", func(c *erpsim.Call) { c.Raw("hello\r\n\r\n") }, "unknown", "no_answer", "lost", ""},
		{"silence", (*erpsim.Call).Hold, "unknown", "no_answer", "lost", ""},
		{"500", plain(500), "unknown", "server_error", "lost", ""},
		{"502", plain(502), "unknown", "server_error", "lost", ""},
		{"504", plain(504), "unknown", "server_error", "lost", ""},
		{"in progress", refuse(409, problem.OperationInProgress), "pending", "waiting", "wait", ""},
		{"too many", refuse(429, problem.TooManyRequests), "pending", "waiting", "wait", ""},
		{"overloaded", refuse(503, problem.Overloaded), "pending", "waiting", "wait", ""},
		{"unavailable", refuse(503, problem.Unavailable), "pending", "waiting", "wait", ""},
		{"already invoiced, same", taken("true"), "succeeded", "already_invoiced", "conflict", "INV-7"},
		{"already invoiced, other", taken("false"), "failed", "conflict", "conflict", ""},
		{"key reused", refuse(422, problem.IdempotencyKeyReused), "failed", "conflict", "conflict", ""},
		{"malformed", refuse(400, problem.MalformedRequest), "failed", "rejected", "rejected", ""},
		{"too large", refuse(413, problem.ContentTooLarge), "failed", "rejected", "rejected", ""},
		{"media type", refuse(415, problem.UnsupportedMediaType), "failed", "rejected", "rejected", ""},
		{"invalid", refuse(422, problem.InvalidInvoice), "failed", "rejected", "rejected", ""},
		{"unauthenticated", refuse(401, problem.Unauthenticated), "pending", "not_authorised", "not_authorised", ""},
		{"forbidden", refuse(403, problem.Forbidden), "pending", "not_authorised", "not_authorised", ""},
		{"404", plain(404), "failed", "configuration", "wrong_answer", ""},
		{"301", plain(301), "failed", "configuration", "wrong_answer", ""},
		{"304", plain(304), "failed", "configuration", "wrong_answer", ""},
	} {
		d.erp.OnPost(tc.handle)
		id := d.operation("SO-" + tc.name)
		next := d.deliver(id)
		s := d.wantState(id, tc.status, tc.reason, tc.outcome)
		if s.Number != tc.number {
			t.Errorf("%s: number is %q, want %q", tc.name, s.Number, tc.number)
		}
		if final := tc.status == "succeeded" || tc.status == "failed"; next.Done != final {
			t.Errorf("%s: done is %v", tc.name, next.Done)
		}
	}
}

func TestWhatCouldNotBeSentStaysPending(t *testing.T) {
	d := setupDelivery(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	d.client.BaseURL = "http://" + closed.Addr().String()
	id := d.operation("SO-1001")
	d.deliver(id)
	d.wantState(id, "pending", "not_reached", "not_sent")

	d.client.BaseURL = d.erp.URL
	d.makeDue(id)
	d.deliver(id)
	d.wantState(id, "succeeded", "", "not_sent delivered")
}

// CASES K3 a, b, e, g: the ERP said yes, but the answer is not whole.
func TestAnIncompleteYesIsAskedForBeforeAnythingIsSentAgain(t *testing.T) {
	for name, spoil := range map[string]func(*erpsim.Call, erpsim.Answer){
		"half, then silence": func(c *erpsim.Call, a erpsim.Answer) {
			c.W.WriteHeader(a.Status)
			_, _ = c.W.Write(a.Body[:len(a.Body)/2])
			_ = http.NewResponseController(c.W).Flush()
			c.Hold()
		},
		"empty": func(c *erpsim.Call, _ erpsim.Answer) { c.Raw("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n") },
		"announced longer than it is": func(c *erpsim.Call, a erpsim.Answer) {
			c.Raw("HTTP/1.1 201 Created\r\nContent-Length: 9999\r\n\r\n" + string(a.Body))
		},
		"two gigabytes": func(c *erpsim.Call, a erpsim.Answer) {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			c.W.WriteHeader(a.Status)
			for range 2048 {
				if _, err := c.W.Write(chunk); err != nil {
					return
				}
			}
		},
		"not JSON": func(c *erpsim.Call, a erpsim.Answer) {
			c.Send(erpsim.Answer{Status: a.Status, Type: "text/plain", Body: []byte("OK")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := setupDelivery(t)
			d.client.AttemptTimeout = 2 * time.Second
			d.client.MaxAnswerBytes = 1 << 16
			d.erp.OnPost(func(c *erpsim.Call) { spoil(c, c.Commit()) })
			id := d.operation("SO-1001")
			d.deliver(id)
			d.wantState(id, "unknown", "answer_incomplete", "lost")
			d.makeDue(id)
			d.deliver(id)
			d.wantState(id, "succeeded", "", "lost replayed")
			if n := d.erp.Gets(); n != 1 {
				t.Errorf("asked %d times", n)
			}
			d.wantOneKeyAndBody(id, 1)
			d.wantOneInvoice(id)
		})
	}
}

func TestAfterAnIncompleteYesTheSameIsSentIfTheERPKnowsNothing(t *testing.T) {
	d := setupDelivery(t)
	d.erp.OnPost(func(c *erpsim.Call) {
		if c.N == 1 {
			c.Raw("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n") // from something that is not the ERP
			return
		}
		c.Send(c.Commit())
	})
	id := d.operation("SO-1001")
	d.deliverUntilDone(id, 2)
	d.wantState(id, "succeeded", "", "lost delivered")
	d.wantOneKeyAndBody(id, 2)
	d.wantOneInvoice(id)
}

// CASES K2 and K3 c, d, f: what answers is not the ERP.
func TestAWrongAnswerIsNeverSuccessAndNeverRepeated(t *testing.T) {
	for name, handle := range map[string]func(*erpsim.Call){
		"log-in page": func(c *erpsim.Call) {
			c.Send(erpsim.Answer{Status: 200, Type: "text/html; charset=utf-8", Body: []byte("<html>log in</html>")})
		},
		"another order": func(c *erpsim.Call) {
			a := c.Commit()
			a.Body = []byte(strings.Replace(string(a.Body), "SO-1001", "SO-2002", 1))
			c.Send(a)
		},
		"no content": func(c *erpsim.Call) { c.W.WriteHeader(http.StatusNoContent) },
		"redirect": func(c *erpsim.Call) {
			c.W.Header().Set("Location", "/v1/invoices/")
			c.W.WriteHeader(http.StatusPermanentRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := setupDelivery(t)
			d.erp.OnPost(handle)
			id := d.operation("SO-1001")
			for range 2 {
				if !d.deliver(id).Done {
					t.Error("something is left to do")
				}
			}
			d.wantState(id, "failed", "configuration", "wrong_answer")
			d.wantOneKeyAndBody(id, 1)
		})
	}
}

// An earlier attempt may have made the invoice: then failed would be a lie, and an operator would make a revision.
func TestAWrongAnswerAfterALostOneNeedsAnOperatorAndFailsNothing(t *testing.T) {
	d := setupDelivery(t)
	d.erp.OnPost(func(c *erpsim.Call) {
		if c.N == 1 {
			c.Commit()
			c.Reset()
			return
		}
		c.W.WriteHeader(http.StatusNoContent)
	})
	id := d.operation("SO-1001")
	d.deliverUntilDone(id, 2)
	if s := d.wantState(id, "unknown", "configuration", "lost wrong_answer"); !s.Flagged {
		t.Error("not flagged")
	}
}

func TestNotBeingSentDoesNotMakeTheUnknownKnown(t *testing.T) {
	d := setupDelivery(t)
	d.erp.OnPost(func(c *erpsim.Call) { c.Commit(); c.Reset() })
	id := d.operation("SO-1001")
	d.deliver(id)
	d.makeDue(id)
	d.client.BaseURL = "http://127.0.0.1:0"
	d.deliver(id)
	d.wantState(id, "unknown", "not_reached", "lost not_sent")
}

// CASES K4.
func TestPausesFollowRetryAfter(t *testing.T) {
	d := setupDelivery(t)
	d.opts.BackOff.Base, d.opts.BackOff.Cap = 10*time.Second, 10*time.Second
	in := func(pause time.Duration, layout string) []string {
		return []string{"Retry-After", time.Now().UTC().Add(pause).Format(layout)}
	}
	const rfc850 = "Monday, 02-Jan-06 15:04:05 GMT"
	normal := d.opts.BackOff.Base
	for _, tc := range []struct {
		name    string
		headers []string
		want    time.Duration
	}{
		{"seconds", []string{"Retry-After", "120"}, 2 * time.Minute},
		{"date", in(2*time.Minute, http.TimeFormat), 2 * time.Minute},
		{"RFC 850 date", in(2*time.Minute, rfc850), 2 * time.Minute},
		{"asctime date", in(2*time.Minute, time.ANSIC), 2 * time.Minute},
		{"past", in(-time.Hour, http.TimeFormat), erpapi.RetryAfterFloor},
		{"zero", []string{"Retry-After", "0"}, erpapi.RetryAfterFloor},
		{"huge", []string{"Retry-After", "99999999999999999999"}, erpapi.RetryAfterCap},
		{"negative", []string{"Retry-After", "-3"}, normal},
		{"fraction", []string{"Retry-After", "1.5"}, normal},
		{"junk", []string{"Retry-After", "120junk"}, normal},
		{"empty", []string{"Retry-After", ""}, normal},
		{"two", []string{"Retry-After", "120", "Retry-After", "5"}, normal},
		{"none", nil, normal},
	} {
		for status, kind := range map[int]problem.Type{
			429: problem.TooManyRequests, 503: problem.Unavailable, 409: problem.OperationInProgress,
		} {
			d.erp.OnPost(func(c *erpsim.Call) { c.Refuse(status, kind, tc.headers...) })
			id := d.operation("SO-" + tc.name + http.StatusText(status))
			d.deliver(id)
			// The margin below is for the time that has passed since, and for a Date of whole seconds.
			if got := d.state(id).Pause; got > tc.want || got < tc.want-5*time.Second {
				t.Errorf("%s with %d: pause is %v, want %v", tc.name, status, got, tc.want)
			}
		}
	}
}

func TestABackOffIsNeverShorterThanRetryAfter(t *testing.T) {
	d := setupDelivery(t)
	d.erp.OnPost(func(c *erpsim.Call) { c.Refuse(500, problem.Internal, "Retry-After", "600") })
	id := d.operation("SO-1001")
	d.deliver(id)
	if got := d.state(id).Pause; got < 9*time.Minute {
		t.Errorf("pause is %v", got)
	}
}

func TestNotBeingAuthorisedMakesTheBridgeSlow(t *testing.T) {
	d := setupDelivery(t)
	d.erp.OnPost(func(c *erpsim.Call) { c.Refuse(401, problem.Unauthenticated) })
	id := d.operation("SO-1001")
	d.deliver(id)
	if got := d.state(id).Pause; got < 59*time.Minute {
		t.Errorf("pause is %v", got)
	}
	d.opts.Token = func(string) string { return "" }
	d.makeDue(id)
	d.deliver(id)
	d.wantState(id, "pending", "not_authorised", "not_authorised not_authorised")
	d.wantOneKeyAndBody(id, 1)

	d.erp.OnPost(func(c *erpsim.Call) { c.Send(c.Commit()) })
	d.opts.Token = func(string) string { return deliverToken }
	d.makeDue(id)
	d.deliver(id)
	d.wantState(id, "succeeded", "", "not_authorised not_authorised delivered")
}

package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
)

func anOrder(message, order string) string {
	return fmt.Sprintf(`{"message_id":"%s","source":"crm-1","order":"%s","currency":"EUR","issue_date":"2026-03-02",`+
		`"customer":{"name":"Müller","country":"DE","vat_id":"XX000000001"},`+
		`"lines":[{"sku":"P-1","quantity":"2","unit_price":"100","vat_rate":"19","vat_category":"S"}]}`, message, order)
}

// Case L1: copies of one event, at the same instant, under one delivery id and under ten, and late ones: one task, and each copy
// is answered alike. An empty call is refused, and one id of a delivery does not swallow another order.
func TestCopiesOfAnEventAreOneTaskHoweverTheyCome(t *testing.T) {
	s := setupCRM(t)
	var group sync.WaitGroup
	for i := range 20 {
		message := "delivery-1"
		if i >= 10 {
			message = fmt.Sprint("delivery-", i)
		}
		group.Go(func() {
			if a := s.call(http.MethodPost, "/v1/orders", s.writer, anOrder(message, "SO-1"), nil); a.StatusCode/100 != 2 {
				t.Errorf("copy %d is answered %d", i, a.StatusCode)
			}
		})
	}
	group.Wait()
	s.holds(1, 1, 1)
	s.submits("/v1/orders", anOrder("three days later", "SO-1"), http.StatusOK, nil)
	s.holds(1, 1, 1)
	for name, body := range map[string]string{"empty": "", "blank": " \r\n", "a ping, which is no order": `{"ping":true}`} {
		if a := s.call(http.MethodPost, "/v1/orders", s.writer, body, nil); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	s.submits("/v1/orders", anOrder("one id", "SO-2"), http.StatusCreated, nil)
	s.submits("/v1/orders", anOrder("one id", "SO-3"), http.StatusCreated, nil)
	s.holds(3, 3, 3)
}

// Cases L3 and L4: senders prove who they are with a token over TLS, not with a signature over the body, so no rewriting of JSON on
// the way can make a good message bad, and no clock can. However it is written it is the same order; without the right
// token nothing of it is read or stored; and the same call a hundred times has one effect, whenever it comes.
func TestTheFormOfAMessageAndItsTimeDecideNothing(t *testing.T) {
	s := setupCRM(t)
	order := anOrder("m", "SO-<&>")
	forms := map[string]string{
		"as it is":                 order,
		"with CRLF and blanks":     "\r\n " + strings.NewReplacer(",", " ,\r\n\t", ":", " : ").Replace(order) + "\r\n",
		"escaped letters":          strings.NewReplacer("ü", `\u00fc`, "<", `\u003c`, "&", `\u0026`, ">", `\u003E`).Replace(order),
		"another order of members": `{"lines":` + order[strings.Index(order, `"lines":`)+8:len(order)-1] + "," + order[1:strings.Index(order, `,"lines"`)] + "}",
		"1e2 for 100":              strings.Replace(order, `"unit_price":"100"`, `"unit_price":1e2`, 1),
		"100.0":                    strings.Replace(order, `"unit_price":"100"`, `"unit_price":100.0`, 1),
		"a letter and its accent":  strings.Replace(order, "ü", "u\u0308", 1),
	}
	first := forms["as it is"]
	s.submits("/v1/orders", first, http.StatusCreated, nil)
	for name, body := range forms {
		var got crm.Submission
		s.submits("/v1/orders", body, http.StatusOK, &got)
		if got.Outcome != crm.OutcomeAlreadyThere {
			t.Errorf("%s: %s %s", name, got.Outcome, got.Detail)
		}
	}
	for range 100 {
		s.submits("/v1/orders", first, http.StatusOK, nil)
	}
	s.holds(1, 1, 1)

	var changed crm.Submission
	s.submits("/v1/orders", strings.Replace(order, `"quantity":"2"`, `"quantity":"3"`, 1), http.StatusOK, &changed)
	if changed.Outcome != crm.OutcomeChanged {
		t.Errorf("a changed byte is told as %s", changed.Outcome)
	}
	before := s.count("orders") + s.count("inbox_messages") + s.count("intake_refusals")
	for name, token := range map[string]string{
		"none": "", "one letter wrong": s.writer[:len(s.writer)-1] + map[bool]string{true: "1", false: "0"}[s.writer[len(s.writer)-1] == '0'],
		"its beginning": s.writer[:40], "in capitals": strings.ToUpper(s.writer), "two of them": s.writer + ", " + s.writer,
	} {
		if a := s.call(http.MethodPost, "/v1/orders", token, anOrder("x", "SO-9"), nil); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	if after := s.count("orders") + s.count("inbox_messages") + s.count("intake_refusals"); after != before {
		t.Errorf("%d rows of what nobody was known for", after-before)
	}
	s.submits("/v1/orders", strings.Replace(anOrder("m2", "SO-10"), `"m2"`, `"the sender's true retry"`, 1), http.StatusCreated, nil)
	// Two tokens at once, as while one is being changed.
	second := s.token("acme", auth.RoleWriter)
	if a := s.call(http.MethodPost, "/v1/orders", second, anOrder("m3", "SO-10"), nil); a.StatusCode != http.StatusOK {
		t.Errorf("the second token: %d", a.StatusCode)
	}
}

// Case P2: what can never become an order is told, kept with its reason for people, and keeps none of the thousand beside it out.
func TestAPoisonedMessageIsToldAndKeepsNoOtherOut(t *testing.T) {
	s := setupCRM(t)
	var all []string
	for i := range 1000 {
		all = append(all, anOrder("", fmt.Sprint("SO-", i)))
	}
	all[500] = `{"source":"crm-1","order":"SO-bad","version":"of the next year","nobody":"knows me"}`
	all[501] = strings.Replace(anOrder("", "SO-breaks-a-constraint"), "crm-1", strings.Repeat("s", 65), 1)
	s.submits("/v1/orders?keep_good=true", "["+strings.Join(all, ",")+"]", http.StatusCreated, nil)
	s.holds(998, 998, 998)
	refused := s.count("intake_refusals")
	if refused == 0 {
		t.Error("nobody can see what was refused")
	}
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"no JSON": {"<order>1</order>", 400}, "of an unknown form": {`{"schema":"v9","data":{}}`, 400}, "too large": {`{"note":"` + strings.Repeat("x", 11<<20) + `"}`, 413},
	} {
		for range 3 {
			if a := s.call(http.MethodPost, "/v1/orders", s.writer, c.body, nil); a.StatusCode != c.status {
				t.Errorf("%s: %d, want %d", name, a.StatusCode, c.status)
			}
		}
	}
	if n := s.count("intake_refusals"); n <= refused {
		t.Errorf("%d refusals are kept after more came, %d before", n, refused)
	}
	s.submits("/v1/orders", anOrder("", "SO-good"), http.StatusCreated, nil)
	s.holds(999, 999, 999)
}

package ledger_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/ledger"
)

// canned answers every request alike.
type canned struct {
	status      int
	contentType string
	body        []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: c.status, Header: http.Header{"Content-Type": {c.contentType}}, Body: io.NopCloser(bytes.NewReader(c.body)), Request: r,
	}, nil
}

// Whatever a ledger answers: nothing is registered or absent that it has not said in so many words, and nothing that may be
// there is said not to have been applied.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"id":"e-1","external_reference":"op-1","number":"INV-1","status":"draft"}`, `{"id":"e-1","external_reference":"op-1","number":"INV-1","status":"posted","reference":"V-1","warnings":["late",{}]}`,
		`{"code":"already_entered","original":{"id":"e-1","reference":"V-1","number":"INV-1"}}`, `{"code":"closed","errors":[{"pointer":"/a"},1]}`, `{"items":[]}`, `{"items":null}`, `{"items":[{"external_reference":"op-1","status":"posted","reference":"V"}]}`,
		``, `null`, `[]`, `<html>`, `{"id":"e-1","id":"e-2"}`, "{\"id\":\"\xff\"}",
	} {
		for _, status := range []int{200, 201, 202, 409, 422, 503} {
			f.Add(status, "application/json", []byte(seed))
		}
	}
	f.Add(404, "text/html", []byte("<h1>not here</h1>"))
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		c, err := ledger.New(ledger.Config{
			BaseURL: "http://ledger.example", Token: target.NewSecret("hush"), Timeout: time.Minute,
			Wrap: func(http.RoundTripper) http.RoundTripper { return canned{status, contentType, body} },
		})
		if err != nil {
			t.Fatal(err)
		}
		readable := jsontext.Value(body).IsValid()
		for _, known := range []string{"", "e-1"} {
			s := submission
			s.Known = known
			sent := c.Send(t.Context(), s)
			if sent.Outcome == "" || sent.Detail == "" {
				t.Fatalf("%d %q means %+v", status, body, sent)
			}
			if sent.Registered() && (!readable || status >= 300 && status != 409) {
				t.Fatalf("%d %q is taken as registered: %+v", status, body, sent)
			}
			if sent.NotApplied && (known != "" || status < 400 || status >= 500) {
				t.Fatalf("%d %q proves nothing: %+v", status, body, sent)
			}
		}
		l := c.Locate(t.Context(), target.Query{Reference: "op-1", Number: "INV-1"})
		usable := readable && status == http.StatusOK
		if l.Detail == "" || !usable && l.State != target.Inconclusive || (l.State == target.Landed) && l.Reference == "" {
			t.Fatalf("%d %q is taken as %+v", status, body, l)
		}
		if l.State == target.Absent && !bytes.Contains(body, []byte("[")) {
			t.Fatalf("%q is taken as absence", body)
		}
	})
}

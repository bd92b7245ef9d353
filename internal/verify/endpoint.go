package verify

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// endpoint is an implementation of POST /v1/invoices, with a token for it. It may be anybody's.
type endpoint struct {
	base   string
	token  string
	client *http.Client
	roots  *x509.CertPool // whom to trust; nil: whom the system trusts
}

const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 4 << 20
)

func newEndpoint(base, token string) endpoint {
	return endpoint{
		base: strings.TrimSuffix(base, "/"), token: token,
		client: &http.Client{
			Timeout:   requestTimeout,
			Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
			// A redirected POST is another request (RFC 9110, 15.4): whoever answers so has not answered.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// answer is an answer that came whole, or the error that came instead.
type answer struct {
	status   int
	replayed bool
	location string
	body     string
	err      error
}

// invoiced says whether this is the answer of an invoice that was issued, now or before.
func (a answer) invoiced() bool { return a.err == nil && a.status == http.StatusCreated }

// same says whether another answer is this one again.
func (a answer) same(b answer) bool {
	return a.status == b.status && a.body == b.body && a.location == b.location
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	text := a.body
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return fmt.Sprintf("%d %s", a.status, strings.TrimSpace(text))
}

// problem is the last segment of a problem document's type, "" if the answer is none.
func (a answer) problem() string {
	var document struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(a.body), &document) != nil {
		return ""
	}
	return document.Type[strings.LastIndexByte(document.Type, '/')+1:]
}

// id is the invoice's.
func (a answer) id() string {
	var document struct {
		ID string `json:"id"`
	}
	if json.Unmarshal([]byte(a.body), &document) != nil {
		return ""
	}
	return document.ID
}

// invoice is a request for one invoice.
type invoice struct{ key, order, price string }

// body is the request's. The customer is nobody.
func (i invoice) body() string {
	return fmt.Sprintf(`{"source":"verify","order":%q,"role":"final","currency":"EUR","issue_date":"2026-03-02",`+
		`"customer":{"name":"Verification","country":"DE","vat_id":"XX000000001"},`+
		`"lines":[{"sku":"P-1","quantity":"2","unit_price":%q,"vat_rate":"19","vat_category":"S"}]}`, i.order, i.price)
}

// issue asks for an invoice.
func (e endpoint) issue(ctx context.Context, i invoice) answer {
	return e.do(ctx, http.MethodPost, "/v1/invoices", i.key, i.body())
}

func (e endpoint) do(ctx context.Context, method, path, key, body string) answer {
	req, err := http.NewRequestWithContext(ctx, method, e.base+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Authorization", "Bearer "+e.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	// net/http sends a request with an Idempotency-Key again by itself when a kept connection breaks. Here that would
	// hide what is tried. Without GetBody it can't.
	req.GetBody = nil
	res, err := e.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return answer{
		status: res.StatusCode, replayed: res.Header.Get("Idempotent-Replayed") == "true",
		location: res.Header.Get("Location"), body: string(text), err: err,
	}
}

// count says how many invoices an order has. Where there is no list it is not known.
func (e endpoint) count(ctx context.Context, order string) (n int, known bool) {
	got := e.do(ctx, http.MethodGet, "/v1/invoices?"+url.Values{"source": {"verify"}, "order": {order}}.Encode(), "", "")
	var page struct {
		Items *[]struct {
			Order string `json:"order"`
		} `json:"items"`
	}
	if got.status != http.StatusOK || json.Unmarshal([]byte(got.body), &page) != nil || page.Items == nil {
		return 0, false
	}
	for _, item := range *page.Items {
		if item.Order == order {
			n++
		}
	}
	return n, true
}

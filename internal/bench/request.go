package bench

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
)

// What every invoice here is: two lines of goods for a customer with a full address, as a shop sends them. @ stands for the
// order's id.
const invoiceBody = `{"source":"bench","order":"@","role":"final","currency":"EUR","issue_date":"2026-03-02","due_date":"2026-04-01",` +
	`"customer":{"name":"Nordwind Handels GmbH","country":"DE","vat_id":"DE811907980","email":"einkauf@nordwind.example","address":"Hafenstr. 12, 20457 Hamburg"},` +
	`"lines":[{"sku":"KB-104","description":"Keyboard, mechanical","quantity":"2","unit_price":"89.90","vat_rate":"19","vat_category":"S"},` +
	`{"sku":"CB-2M","description":"Cable USB-C, 2 m","quantity":"10","unit_price":"7.35","discount":"3.50","vat_rate":"19","vat_category":"S"}],` +
	`"expected_gross":"297.26","metadata":{"channel":"web"}}`

// orderBody is the same as the CRM side takes it.
const orderBody = invoiceBody

// sayHealthy is the least that a service can be asked.
const sayHealthy = "GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n"

// orders gives ids of orders that no other of this run has.
type orders struct{ used atomic.Int64 }

// requests makes requests of a site's tenants.
type requests struct {
	heads   []string // by tenant, up to the key
	orders  *orders
	tenants int
}

// create asks for an invoice of a new order, of any of the tenants. The key is the order's id.
func (r *requests) create() script {
	return func(_ int, random *rand.Rand, b []byte) []byte {
		return r.issue(b, random.IntN(r.tenants), "B"+strconv.FormatInt(r.orders.used.Add(1), 10))
	}
}

// createOf asks for an invoice of a new order, always of the first tenant.
func (r *requests) createOf() script {
	return func(_ int, _ *rand.Rand, b []byte) []byte {
		return r.issue(b, 0, "B"+strconv.FormatInt(r.orders.used.Add(1), 10))
	}
}

// repeat asks again for one of the invoices whose orders are numbered from..to-1 behind the prefix, dealt out to the tenants
// in turn.
func (r *requests) repeat(prefix string, from, to int) script {
	return func(_ int, random *rand.Rand, b []byte) []byte {
		n := from + random.IntN(to-from)
		return r.issue(b, n%r.tenants, prefix+strconv.Itoa(n))
	}
}

// fill asks for these invoices the first time.
func (r *requests) fill(prefix string, next *atomic.Int64) script {
	return func(_ int, _ *rand.Rand, b []byte) []byte {
		n := int(next.Add(1) - 1)
		return r.issue(b, n%r.tenants, prefix+strconv.Itoa(n))
	}
}

var invoiceBefore, invoiceAfter, _ = strings.Cut(invoiceBody, "@")

func (r *requests) issue(b []byte, tenant int, order string) []byte {
	b = append(b, r.heads[tenant]...)
	b = append(b, "Idempotency-Key: \""...)
	b = append(b, order...)
	b = append(b, "\"\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(invoiceBefore)+len(order)+len(invoiceAfter)), 10)
	b = append(b, "\r\n\r\n"...)
	b = append(b, invoiceBefore...)
	b = append(b, order...)
	return append(b, invoiceAfter...)
}

// head is the beginning of a POST, without what differs from one to the next.
func head(path, token string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n", path, token)
}

// submit is a request that brings orders to the CRM side.
func submit(b []byte, head string, orders ...string) []byte {
	var body strings.Builder
	if len(orders) == 1 {
		body.WriteString(strings.Replace(orderBody, "@", orders[0], 1))
	} else {
		for i, order := range orders {
			body.WriteString(map[bool]string{true: "[", false: ","}[i == 0])
			body.WriteString(strings.Replace(orderBody, "@", order, 1))
		}
		body.WriteString("]")
	}
	b = append(b, head...)
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(body.Len()), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body.String()...)
}

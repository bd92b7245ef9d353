package erpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/outbound"
)

// InvoiceQuery says which invoices GET /v1/invoices is asked for. Members left zero do not narrow.
type InvoiceQuery struct {
	Source, Order, Key, Number string
	Role                       Role
	CreatedFrom                time.Time // inclusive
	CreatedTo                  time.Time // exclusive
	Limit                      int       // 1 to 200
	Cursor                     string    // NextCursor of the page before
}

func (q InvoiceQuery) values() url.Values {
	v := url.Values{}
	set := func(name, text string) {
		if text != "" {
			v.Set(name, text)
		}
	}
	set("source", q.Source)
	set("order", q.Order)
	set("key", q.Key)
	set("number", q.Number)
	set("role", string(q.Role))
	set("cursor", q.Cursor)
	if !q.CreatedFrom.IsZero() {
		set("created_from", q.CreatedFrom.UTC().Format(time.RFC3339Nano))
	}
	if !q.CreatedTo.IsZero() {
		set("created_to", q.CreatedTo.UTC().Format(time.RFC3339Nano))
	}
	if q.Limit > 0 {
		set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// ListedInvoice is one item of a list. Invoice is nil if the item is not of that form; one that can't be read does not
// take the others of its page with it.
type ListedInvoice struct {
	Invoice  *Invoice
	Document []byte
	Err      error // why Invoice is nil
}

// InvoiceListing is the answer to ListInvoices. Read says whether it is a page; if it is not, Exchange tells what came.
type InvoiceListing struct {
	Exchange Exchange
	Read     bool
	Items    []ListedInvoice
	Next     string // cursor of the next page; empty on the last
}

// ListInvoices asks GET /v1/invoices for one page, newest first. It changes nothing there.
//
// A page with an item that is no JSON at all can't be taken apart and is not Read, save one of a single item (Limit 1):
// what stands behind the item still tells the next cursor, so that a caller can go on past it.
func (c *Client) ListInvoices(ctx context.Context, token string, q InvoiceQuery) InvoiceListing {
	x := c.exchange(ctx, outbound.Request{
		Method: http.MethodGet, URL: outbound.Address(c.base, q.values(), "v1", "invoices"), Header: c.header(token),
	})
	listing := InvoiceListing{Exchange: x}
	if x.Complete && x.Status == http.StatusOK {
		listing.read(x.Body, q.Limit == 1)
	}
	return listing
}

func (l *InvoiceListing) read(body []byte, single bool) {
	page := decoded[struct {
		Items []jsontext.Value `json:"items"`
		Next  *string          `json:"next_cursor"`
	}](body)
	switch {
	case page == nil && single:
		l.readBroken(body)
	case page == nil || page.Items == nil:
	default:
		l.Read = true
		for _, item := range page.Items {
			l.Items = append(l.Items, readItem(item))
		}
		if page.Next != nil {
			l.Next = *page.Next
		}
	}
}

func readItem(document []byte) ListedInvoice {
	item := ListedInvoice{Document: document}
	var inv Invoice
	if item.Err = json.Unmarshal(document, &inv); item.Err == nil {
		item.Invoice = &inv
	}
	return item
}

// readBroken takes the cursor from the end of a page whose one item is broken: next_cursor is written last.
func (l *InvoiceListing) readBroken(body []byte) {
	head, tail := []byte(`{"items":[`), []byte(`],"next_cursor":`)
	at := bytes.LastIndex(body, tail)
	if at < len(head) || !bytes.HasPrefix(body, head) {
		return
	}
	end := decoded[struct {
		Next *string `json:"next_cursor"`
	}](append([]byte("{"), body[at+2:]...))
	if end == nil {
		return
	}
	l.Read = true
	l.Items = []ListedInvoice{readItem(body[len(head):at])}
	if end.Next != nil {
		l.Next = *end.Next
	}
}

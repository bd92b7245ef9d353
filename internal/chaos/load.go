package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Who sends.
const (
	byInvoices = "invoices" // clients of POST /v1/invoices
	byOrders   = "orders"   // clients of POST /v1/orders
	byAttempts = "attempt"  // a worker, as the ERP saw it

	byOperators = "operator" // of either side

	directSource = "chaos-direct" // of the orders that clients of the ERP name
)

const (
	requestLimit = 5 * time.Second
	clients      = 4 // of each kind
	clientPause  = 200 * time.Millisecond
	againPause   = 150 * time.Millisecond
)

// load is what clients do all the time: they send, and send again until they know.
type load struct {
	seed     uint64
	history  *History
	http     *http.Client
	erps     []string // where invoices are asked for: through the weather
	crms     []string
	erpToken string
	crmToken string
}

func newLoad(seed uint64, h *History) *load {
	return &load{seed: seed, history: h, http: &http.Client{Timeout: requestLimit, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// run begins new work until begin ends, and returns when everything that was begun is known, or ctx ends.
func (l *load) run(ctx context.Context, begin context.Context) {
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() { l.clientOfERP(ctx, begin, n) })
		all.Go(func() { l.clientOfCRM(ctx, begin, n) })
	}
	all.Wait()
}

func (l *load) clientOfERP(ctx, begin context.Context, n int) {
	dice := rand.New(rand.NewPCG(l.seed, uint64(100+n)))
	for i := 0; pause(begin, clientPause); i++ {
		switch what := dice.IntN(12); {
		case what == 0:
			l.batch(ctx, fmt.Sprintf("B-%d-%d", n, i))
		case what <= 2 && i > 0: // late: its reservation may be purged by now
			order := fmt.Sprintf("D-%d-%d", n, dice.IntN(i))
			l.untilKnown(ctx, func() Exchange { return l.invoice(ctx, "chaos-"+order, order, "10.00") })
		default:
			l.intention(ctx, dice, fmt.Sprintf("D-%d-%d", n, i))
		}
	}
}

// intention is one invoice that a client of the ERP wants, with one of the things that clients do wrong.
func (l *load) intention(ctx context.Context, dice *rand.Rand, order string) {
	key := "chaos-" + order
	send := func(key, price string) Exchange { return l.invoice(ctx, key, order, price) }
	atOnce := func(prices ...string) {
		var all sync.WaitGroup
		for _, price := range prices {
			all.Go(func() { send(key, price) })
		}
		all.Wait()
	}
	what := dice.IntN(10)
	switch what {
	case 0:
		atOnce("10.00", "10.00", "10.00")
	case 1:
		atOnce("10.00", "900.00")
	}
	if !l.untilKnown(ctx, func() Exchange { return send(key, "10.00") }) {
		return
	}
	switch what {
	case 2:
		l.untilKnown(ctx, func() Exchange { return send(key, "900.00") })
	case 3:
		l.untilKnown(ctx, func() Exchange { return send(key+"-again", "10.00") })
	case 4, 5:
		l.untilKnown(ctx, func() Exchange { return send(key, "10.00") })
	}
}

// invoice sends one request to any of the ERPs.
func (l *load) invoice(ctx context.Context, key, order, price string) Exchange {
	return l.post(ctx, byInvoices, l.anERP()+"/v1/invoices", l.erpToken, key, order, body(directSource, order, price))
}

func (l *load) anERP() string { return l.erps[rand.IntN(len(l.erps))] }

// batch is several invoices wanted at once, one of them twice and once with other content. It is sent until each is known,
// and then once more.
func (l *load) batch(ctx context.Context, name string) {
	items := make([]batchItem, 0, 6)
	for i := range 4 {
		order := fmt.Sprintf("%s-%d", name, i)
		items = append(items, batchItem{"chaos-" + order, order, body(directSource, order, "10.00")})
	}
	first := items[0]
	items = append(items, first, batchItem{first.key, first.order, body(directSource, first.order, "900.00")})
	for known := 0; known < 2 && ctx.Err() == nil; {
		if l.sendBatch(ctx, items) {
			known++
			continue
		}
		pause(ctx, againPause)
	}
}

type batchItem struct{ key, order, body string }

// sendBatch takes each item's result for an exchange of its own. It says whether all are known.
func (l *load) sendBatch(ctx context.Context, items []batchItem) (known bool) {
	var whole strings.Builder
	for i, item := range items {
		fmt.Fprintf(&whole, `%c{"idempotency_key":%q,"invoice":%s}`, "[,"[min(i, 1)], item.key, item.body)
	}
	sent := l.history.now()
	status, answer, err := l.exchange(ctx, l.anERP()+"/v1/invoices/batch", l.erpToken, "", `{"invoices":`+whole.String()+`]}`)
	var told struct {
		Results []struct {
			Status  int            `json:"status"`
			Invoice jsontext.Value `json:"invoice"`
			Problem jsontext.Value `json:"problem"`
		} `json:"results"`
	}
	if err == nil && status == http.StatusOK {
		if err = json.Unmarshal(answer, &told); err == nil && len(told.Results) != len(items) {
			err = fmt.Errorf("%d results for %d items", len(told.Results), len(items))
		}
	}
	known = err == nil && status == http.StatusOK
	for i, item := range items {
		x := Exchange{Sent: sent, By: byInvoices, Key: item.key, Order: item.order, Content: digest([]byte(item.body))}
		itemStatus, itemAnswer := status, answer
		if known {
			result := told.Results[i]
			itemStatus, itemAnswer = result.Status, result.Problem
			if result.Status == http.StatusCreated {
				itemAnswer = result.Invoice
			}
		}
		x.told(itemStatus, itemAnswer, err)
		x.Ended = l.history.now()
		l.history.exchange(x)
		known = known && x.known()
	}
	return known
}

// known says whether the answer tells what became of the request.
func (x Exchange) known() bool {
	return x.Status/100 == 2 || x.Status == http.StatusUnprocessableEntity || x.Problem == alreadyInvoiced
}

func (l *load) clientOfCRM(ctx, begin context.Context, n int) {
	dice := rand.New(rand.NewPCG(l.seed, uint64(200+n)))
	for i := 0; pause(begin, clientPause); i++ {
		order := fmt.Sprintf("O-%d-%d", n, i)
		if i > 0 && dice.IntN(10) == 0 { // an earlier message again, late: what is kept of it may be minimised by now
			order = fmt.Sprintf("O-%d-%d", n, dice.IntN(i))
		}
		send := func() Exchange {
			return l.post(ctx, byOrders, l.crms[rand.IntN(len(l.crms))]+"/v1/orders", l.crmToken, "", order, body("chaos", order, "10.00"))
		}
		what := dice.IntN(8)
		if what == 0 { // the message comes several times at once
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { send() })
			}
			all.Wait()
		}
		if l.untilKnown(ctx, send) && what < 3 {
			l.untilKnown(ctx, send) // and again, later
		}
	}
}

// untilKnown sends until an answer says what became of it; false if ctx ended first.
func (l *load) untilKnown(ctx context.Context, send func() Exchange) bool {
	for ctx.Err() == nil {
		if send().known() {
			return true
		}
		pause(ctx, againPause)
	}
	return false
}

func (l *load) post(ctx context.Context, by, address, token, key, order, body string) Exchange {
	x := Exchange{Sent: l.history.now(), By: by, Key: key, Order: order, Content: digest([]byte(body))}
	status, answer, err := l.exchange(ctx, address, token, key, body)
	x.told(status, answer, err)
	x.Ended = l.history.now()
	l.history.exchange(x)
	return x
}

func (l *load) exchange(ctx context.Context, address, token, key, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.GetBody = nil // net/http must not send again by itself: every sending is in the history
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := l.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	return res.StatusCode, answer, err
}

func body(source, order, price string) string {
	return fmt.Sprintf(`{"source":%q,"order":%q,"role":"final","currency":"EUR","issue_date":"2026-03-02",`+
		`"customer":{"name":"Chaos","country":"DE","vat_id":"XX000000001"},`+
		`"lines":[{"sku":"P-1","quantity":"2","unit_price":%q,"vat_rate":"19","vat_category":"S"}]}`, source, order, price)
}

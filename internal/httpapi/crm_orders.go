package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

const (
	maxOrdersBody = 10 << 20
	maxOrders     = 10_000 // of one call, however short they are
	maxErrors     = 100    // told of one call
)

// submitOrders takes one order or an array of them. An array is one transaction; with ?keep_good=true its good
// orders are stored even if others are refused, without it one refused order refuses all.
func (h crmSide) submitOrders(c echo.Context) error {
	keepGood, err := keepGoodParam(c)
	if err != nil {
		return err
	}
	body, err := readJSONBody(c, maxOrdersBody)
	if err == nil {
		err = h.submitBody(c, body, keepGood)
	}
	h.recordRefusal(c, body, err)
	return err
}

func (h crmSide) submitBody(c echo.Context, body []byte, keepGood bool) error {
	switch start := bytes.TrimLeft(body, " \t\r\n"); {
	case bytes.HasPrefix(start, []byte("{")):
		return h.submitOne(c, body)
	case bytes.HasPrefix(start, []byte("[")):
		return h.submitMany(c, body, keepGood)
	}
	return problem.New(problem.MalformedRequest, "The body must be one order, a JSON object, or an array of orders.")
}

func keepGoodParam(c echo.Context) (bool, error) {
	values, err := query(c, "keep_good")
	if err != nil {
		return false, err
	}
	switch values.Get("keep_good") {
	case "true":
		return true, nil
	case "", "false":
		return false, nil
	}
	return false, problem.New(problem.MalformedRequest, "The parameter keep_good must be true or false.")
}

func (h crmSide) submitOne(c echo.Context, body []byte) error {
	var order crm.Order
	if err := erpapi.DecodeStrict(body, &order); err != nil {
		return err
	}
	submissions, err := h.orders.Submit(c.Request().Context(), identity(c).Tenant, crm.ChannelAPI, []crm.Order{order}, crm.SubmitOptions{})
	if err != nil {
		return aboutOne(err, submissions)
	}
	c.Response().Header().Set(echo.HeaderLocation, orderPath(submissions[0]))
	return writeJSON(c, submittedStatus(submissions), submissions[0])
}

// aboutOne tells a refusal without the index that only an array has.
func aboutOne(err error, submissions []crm.Submission) error {
	p := problem.As(err)
	if p == nil || len(submissions) != 1 || submissions[0].Outcome != crm.OutcomeRefused {
		return err
	}
	refused := submissions[0]
	return &problem.Problem{Type: p.Type, Detail: sentence(refused.Detail), Errors: refused.Errors}
}

func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func orderPath(s crm.Submission) string {
	return "/v1/orders/" + url.PathEscape(s.Source) + "/" + url.PathEscape(s.Order)
}

// submittedStatus is 201 if something is there now that was not there before.
func submittedStatus(submissions []crm.Submission) int {
	for _, s := range submissions {
		if s.Outcome == crm.OutcomeCreated {
			return http.StatusCreated
		}
	}
	return http.StatusOK
}

// submissionReport answers for an array: what became of each order, in the order of the array, and how many met
// which outcome.
type submissionReport struct {
	Submissions []crm.Submission    `json:"submissions"`
	Counts      map[crm.Outcome]int `json:"counts"`
}

func (h crmSide) submitMany(c echo.Context, body []byte, keepGood bool) error {
	items, err := splitOrders(body)
	if err != nil {
		return err
	}
	batch := decodeOrders(items)
	if p := batch.malformed(); p != nil && !keepGood {
		return p
	}
	submissions, err := h.orders.Submit(c.Request().Context(), identity(c).Tenant, crm.ChannelAPI, batch.orders, crm.SubmitOptions{KeepGood: keepGood})
	if err != nil {
		return err
	}
	report := submissionReport{Submissions: batch.merge(submissions), Counts: map[crm.Outcome]int{}}
	for _, s := range report.Submissions {
		report.Counts[s.Outcome]++
	}
	h.recordRefusal(c, body, refusedAmong(report.Submissions))
	return writeJSON(c, submittedStatus(report.Submissions), report)
}

// splitOrders takes an array apart before its orders are read: a body of millions of empty ones costs little.
func splitOrders(body []byte) ([]jsontext.Value, error) {
	var items []jsontext.Value
	if err := erpapi.DecodeStrict(body, &items); err != nil {
		return nil, err
	}
	if len(items) > maxOrders {
		return nil, problem.New(problem.ContentTooLarge, "An array may have at most %d orders; this one has %d.", maxOrders, len(items))
	}
	return items, nil
}

// orderBatch is an array of orders, each either readable or refused already.
type orderBatch struct {
	orders  []crm.Order
	places  []int                        // of each of orders in the array
	refused map[int][]problem.FieldError // by place
	size    int
}

func decodeOrders(items []jsontext.Value) orderBatch {
	b := orderBatch{size: len(items), refused: map[int][]problem.FieldError{}}
	for i, item := range items {
		var order crm.Order
		if err := decodeOrder(item, &order); err != nil {
			b.refused[i] = toldErrors(err)
			continue
		}
		b.orders, b.places = append(b.orders, order), append(b.places, i)
	}
	return b
}

func decodeOrder(item jsontext.Value, order *crm.Order) error {
	if item.Kind() != '{' {
		return problem.New(problem.MalformedRequest, "an order is a JSON object")
	}
	return erpapi.DecodeStrict(item, order)
}

func toldErrors(err error) []problem.FieldError {
	if p := problem.As(err); p != nil && len(p.Errors) > 0 {
		return p.Errors
	} else if p != nil {
		return []problem.FieldError{{Detail: p.Detail}}
	}
	return []problem.FieldError{{Detail: "can't be read"}}
}

// malformed is the problem of an array that has orders which can't be read; nil if it has none.
func (b orderBatch) malformed() *problem.Problem {
	if len(b.refused) == 0 {
		return nil
	}
	p := problem.New(problem.MalformedRequest, "%d of %d orders can't be read, so nothing was stored.", len(b.refused), b.size)
	for i := range b.size {
		for _, e := range b.refused[i] {
			if len(p.Errors) < maxErrors {
				p.Errors = append(p.Errors, problem.FieldError{Pointer: fmt.Sprintf("/%d%s", i, e.Pointer), Detail: e.Detail})
			}
		}
	}
	return p
}

// merge puts what became of the readable orders among the refused ones, as they stood in the array.
func (b orderBatch) merge(submissions []crm.Submission) []crm.Submission {
	merged := make([]crm.Submission, b.size)
	for i, errs := range b.refused {
		merged[i] = crm.Submission{
			Outcome: crm.OutcomeRefused, Detail: "the order can't be read", Errors: errs, Operations: []crm.OperationLink{},
		}
	}
	for i, place := range b.places {
		merged[place] = submissions[i]
	}
	return merged
}

package httpapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

// recordRefusal writes down that orders were turned away, for the operators of their tenant. What the caller is told has
// been decided, and does not depend on it. What is to be sent again as it is (too many requests, a database that is away)
// is no refusal.
func (h crmSide) recordRefusal(c echo.Context, body []byte, err error) {
	p := problem.As(err)
	if p == nil || h.console == nil {
		return
	}
	if !slices.Contains(refusedIntake(), p.Type) {
		return
	}
	h.refusals.WithLabelValues(string(p.Type)).Inc()
	source, order := whichOrder(body, p)
	h.console.RecordRefusal(c.Request().Context(), crm.Refusal{
		Tenant: identity(c).Tenant, Channel: crm.ChannelAPI, Source: source, Order: order, Problem: p, Body: body, By: by(c, ""),
	})
}

// refusedAmong is the problem of the refused orders of an array whose good ones were kept; nil if there are none.
func refusedAmong(submissions []crm.Submission) error {
	p := problem.New(problem.InvalidOrder, "")
	refused := 0
	for i, s := range submissions {
		if s.Outcome != crm.OutcomeRefused {
			continue
		}
		refused++
		errs := s.Errors
		if len(errs) == 0 {
			errs = []problem.FieldError{{Pointer: "/version", Detail: s.Detail}}
		}
		for _, e := range errs {
			if len(p.Errors) < maxErrors {
				p.Errors = append(p.Errors, problem.FieldError{Pointer: fmt.Sprintf("/%d%s", i, e.Pointer), Detail: e.Detail})
			}
		}
	}
	if refused == 0 {
		return nil
	}
	p.Detail = fmt.Sprintf("%d of %d orders were refused, the others were kept.", refused, len(submissions))
	return p
}

// whichOrder reads whose refusal it is, as far as that can be read: the order, or the first refused one of an array.
func whichOrder(body []byte, p *problem.Problem) (source, order string) {
	tolerant := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	value := jsontext.Value(body)
	if value.Kind() == '[' {
		var items []jsontext.Value
		if json.Unmarshal(body, &items, tolerant) != nil || len(p.Errors) == 0 {
			return "", ""
		}
		index, _, _ := strings.Cut(strings.TrimPrefix(p.Errors[0].Pointer, "/"), "/")
		i, err := strconv.Atoi(index)
		if err != nil || i < 0 || i >= len(items) {
			return "", ""
		}
		value = items[i]
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(value, &members, tolerant) != nil {
		return "", ""
	}
	text := func(name string) (text string) {
		if json.Unmarshal(members[name], &text, tolerant) != nil {
			return ""
		}
		return text
	}
	return text("source"), text("order")
}

package httpapi

import (
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// operationParams are the parameters of the list of operations.
func operationParams() []string {
	return []string{
		"status", "attention", "due", "reason", "source", "role", "flagged", "order", "key", "q", "from", "to", "older_than",
		"sort", "limit", "cursor",
	}
}

func operationSearch(values url.Values) (f crm.OperationSearch, err error) {
	f = crm.OperationSearch{
		Status: crm.OperationStatus(values.Get("status")), Reason: crm.Reason(values.Get("reason")), Source: values.Get("source"),
		Role: erpapi.Role(values.Get("role")), Order: values.Get("order"), Key: values.Get("key"), Text: values.Get("q"),
	}
	if f.PageQuery, err = pageQuery(values); err != nil {
		return f, err
	}
	if f.CreatedFrom, f.CreatedTo, err = timeRange(values); err != nil {
		return f, err
	}
	if text := values.Get("older_than"); text != "" {
		if f.OlderThan, err = time.ParseDuration(text); err != nil {
			return f, problem.New(problem.MalformedRequest, "The parameter older_than must be a time such as 15m or 24h.")
		}
	}
	for name, into := range map[string]*bool{"attention": &f.Attention, "due": &f.Due} {
		if *into, err = tick(values, name); err != nil {
			return f, err
		}
	}
	flagged, err := tick(values, "flagged")
	if flagged {
		f.Flagged = &flagged
	}
	return f, err
}

// tick is a box that is ticked or not.
func tick(values url.Values, name string) (bool, error) {
	switch values.Get(name) {
	case "yes":
		return true, nil
	case "":
		return false, nil
	}
	return false, problem.New(problem.MalformedRequest, "The parameter %s must be yes, or left out.", name)
}

func (h crmSide) showOperations(c echo.Context) error {
	values, err := query(c, operationParams()...)
	if err != nil {
		return err
	}
	f, err := operationSearch(values)
	if err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	found, err := h.console.SearchOperations(ctx, tenant, f)
	if err != nil {
		return err
	}
	sources, err := h.console.ListSources(ctx, tenant)
	if err != nil {
		return err
	}
	l := listing{operationsPath, values}
	page := web.CRMOperations{
		Layout: h.layout(c, "Operations", operationsPath), Filter: operationFilter(l, sources), Lines: operationLines(found.Items),
		Pager: l.pager(shown(len(found.Items), "operation", f.OldestFirst), found.Next, found.Previous),
		Live:  f.Cursor == "",
	}
	if found.Cut {
		page.Cut = "Very many orders begin like this: only the operations of the first 200 of them are searched. Write more of the number."
	}
	if len(found.Items) == 0 {
		page.Empty = noOperations(c, l)
	}
	if mayOperate(c) {
		page.Replay, page.ReplayNot = bulkReplay(l, f, len(found.Items))
	}
	return h.show(c, page)
}

func noOperations(c echo.Context, l listing) *web.Empty {
	if l.cleared() == "" {
		return nothingCameIn(c)
	}
	return &web.Empty{
		Title: "No operation matches.",
		Text:  "An order's number is found by its beginning, a key only whole. What was refused on its way in is no operation.",
		Links: []web.Link{
			{Href: operationsPath, Text: "All operations"},
			{Href: intakePath, Text: "Refused intake", About: "What came in and was turned away."},
		},
	}
}

func operationFilter(l listing, sources []string) web.Filter {
	get := l.values.Get
	f := l.filter("Find operations")
	statuses := []string{}
	for _, s := range crm.OperationStatuses() {
		statuses = append(statuses, string(s))
	}
	roles, reasons := []string{}, []string{}
	for _, r := range erpapi.Roles() {
		roles = append(roles, string(r))
	}
	for _, r := range crm.Reasons() {
		reasons = append(reasons, string(r))
	}
	f.Fields = []web.Field{
		{Form: findForm, Name: "q", Label: "Key, or beginning of an order's number", Type: web.FieldSearch, Value: get("q")},
		{Form: findForm, Name: "status", Label: "State", Type: web.FieldSelect, Value: get("status"), Options: web.Options("any", statuses...)},
		{Form: findForm, Name: "source", Label: "Source", Type: web.FieldSelect, Value: get("source"), Options: sourceOptions(sources, get("source"))},
		{Form: findForm, Name: "attention", Label: "Needs a person", Type: web.FieldCheck, Value: get("attention")},
	}
	f.More = []web.Field{
		{Form: findForm, Name: "reason", Label: "Reason", Type: web.FieldSelect, Value: get("reason"), Options: web.Options("any", reasons...)},
		{Form: findForm, Name: "role", Label: "Role", Type: web.FieldSelect, Value: get("role"), Options: web.Options("any", roles...)},
		{Form: findForm, Name: "order", Label: "Order, whole number", Value: get("order")},
		{Form: findForm, Name: "key", Label: "Key", Value: get("key")},
		{Form: findForm, Name: "older_than", Label: "Older than", Type: web.FieldSelect, Value: get("older_than"), Options: ageOptions(get("older_than"))},
	}
	f.More = append(f.More, l.rangeFields()...)
	f.More = append(f.More,
		web.Field{Form: findForm, Name: "flagged", Label: "Left to an operator", Type: web.FieldCheck, Value: get("flagged")},
		web.Field{Form: findForm, Name: "due", Label: "Due, waiting for a worker", Type: web.FieldCheck, Value: get("due")},
	)
	sorts := []web.Option{{Value: "", Text: "newest first"}, {Value: "oldest", Text: "oldest first"}}
	f.More = append(f.More, web.Field{Form: findForm, Name: "sort", Label: "Order of the list", Type: web.FieldSelect, Value: get("sort"), Options: sorts})
	return f
}

// sourceOptions are names as they are: an underscore in one is no blank.
func sourceOptions(sources []string, chosen string) []web.Option {
	options, there := []web.Option{{Value: "", Text: "any"}}, chosen == ""
	for _, s := range sources {
		options, there = append(options, web.Option{Value: s, Text: s}), there || s == chosen
	}
	if !there {
		options = append(options, web.Option{Value: chosen, Text: chosen})
	}
	return options
}

func ageOptions(chosen string) []web.Option {
	options, there := []web.Option{{Value: "", Text: "any age"}}, chosen == ""
	for _, o := range []web.Option{
		{Value: "5m", Text: "5 minutes"}, {Value: "1h", Text: "1 hour"}, {Value: "6h", Text: "6 hours"},
		{Value: "24h", Text: "a day"}, {Value: "168h", Text: "a week"},
	} {
		options, there = append(options, o), there || o.Value == chosen
	}
	if !there {
		options = append(options, web.Option{Value: chosen, Text: chosen})
	}
	return options
}

func operationLines(operations []crm.Operation) []web.OperationLine {
	lines := make([]web.OperationLine, len(operations))
	for i, op := range operations {
		lines[i] = web.OperationLine{
			Href: operationHref(op.Key), Source: op.Source, Order: op.Order, Role: roleText(op.Role, op.Sequence),
			State: web.StateOf(string(op.Status)), Marks: marks(op), Why: why(op), Attempts: int(op.Attempts),
			Created: web.At(op.CreatedAt), Key: op.Key,
		}
		if op.Invoice != nil {
			lines[i].Invoice = op.Invoice.Number
		}
	}
	return lines
}

// roleText names the sequence only where there can be several.
func roleText(role erpapi.Role, sequence int64) string {
	if role == erpapi.RoleFinal || sequence == 1 {
		return inWordsOf(string(role))
	}
	return inWordsOf(string(role)) + " " + strconv.FormatInt(sequence, 10)
}

func marks(op crm.Operation) (marks []web.State) {
	if op.FlaggedAt != nil {
		marks = append(marks, web.State{Tone: web.ToneUnknown, Text: "needs a person"})
	}
	if op.ChangedAfterDeliveryVersion != nil {
		marks = append(marks, web.State{Tone: web.ToneBad, Text: "order changed afterwards"})
	}
	if op.SupersededAt != nil {
		marks = append(marks, web.State{Tone: web.ToneOff, Text: "superseded"})
	}
	return marks
}

func why(op crm.Operation) string {
	text := inWordsOf(string(op.Reason))
	if op.Detail == "" {
		return text
	}
	if text != "" {
		text += ": "
	}
	return text + op.Detail
}

package invoice

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bojanz/currency"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// Limits of a request. Lengths are in characters.
const (
	maxSource        = 64
	maxOrder         = 128
	maxSequence      = 999_999
	maxCorrects      = 64
	maxName          = 200
	maxVATID         = 32
	maxEmail         = 254 // RFC 5321, section 4.5.3.1.3, less the angle brackets
	maxAddress       = 500
	maxNote          = 2000
	maxMetadata      = 50
	maxMetadataKey   = 64
	maxMetadataValue = 500
	maxLines         = 1000
	maxSKU           = 64
	maxDescription   = 1000
	maxReason        = 500

	// maxFieldErrors bounds the answer to a request that is wrong in every line.
	maxFieldErrors = 100
)

const lineBreaks = "\t\r\n"

// validate checks everything that can be known without a database and computes the amounts. All mistakes are told
// at once, in a problem of type invalid-invoice, each with its pointer.
func validate(r *erpapi.InvoiceRequest) (*draft, *problem.Problem) {
	c := checker{request: r}
	c.checkIdentity()
	c.checkDates()
	c.checkCustomer()
	c.checkNotes()
	c.checkCurrency()
	c.checkLines()
	c.checkOrderTotal()
	if len(c.errors) > 0 {
		return nil, invalid(c.errors...)
	}
	d := newDraft(r, c.digits)
	if wrong := d.check(); len(wrong) > 0 {
		return nil, invalid(wrong...)
	}
	return d, nil
}

func invalid(errors ...problem.FieldError) *problem.Problem {
	p := problem.New(problem.InvalidInvoice, "The invoice can't be issued as requested: %s %s.",
		pointerName(errors[0].Pointer), errors[0].Detail)
	if more := len(errors) - 1; more > 0 {
		p.Detail += fmt.Sprintf(" There are %d more mistakes.", more)
	}
	p.Errors = errors[:min(len(errors), maxFieldErrors)]
	return p
}

func pointerName(pointer string) string {
	if pointer == "" {
		return "the request"
	}
	return pointer
}

// checker gathers what is wrong with one request.
type checker struct {
	request *erpapi.InvoiceRequest
	digits  int32 // decimals of the currency; -1 while that is not known
	errors  []problem.FieldError
}

func (c *checker) refuse(pointer, format string, args ...any) {
	c.errors = append(c.errors, problem.FieldError{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
}

func (c *checker) checkIdentity() {
	r := c.request
	c.identifier("/source", r.Source, maxSource)
	c.identifier("/order", r.Order, maxOrder)
	switch role := r.Role; role {
	case "":
		c.refuse("/role", "is missing")
	case erpapi.RoleFinal:
		if r.EffectiveSequence() != 1 {
			c.refuse("/sequence", "must be 1: an order has one final invoice")
		}
	case erpapi.RoleAdvance, erpapi.RolePartial, erpapi.RoleCreditNote, erpapi.RoleCorrection:
	default:
		c.refuse("/role", "must be one of advance, partial, final, credit_note, correction")
	}
	if s := r.EffectiveSequence(); s < 1 || s > maxSequence {
		c.refuse("/sequence", "must be from 1 to %d", maxSequence)
	}
	switch {
	case r.Role.Corrects():
		c.identifier("/corrects", r.Corrects, maxCorrects)
	case r.Corrects != "":
		c.refuse("/corrects", "is for a credit_note or a correction only")
	}
}

func (c *checker) checkDates() {
	issued, ok := c.date("/issue_date", c.request.IssueDate)
	if c.request.IssueDate == "" {
		c.refuse("/issue_date", "is missing")
	}
	due, dueOK := c.date("/due_date", c.request.DueDate)
	if ok && dueOK && due.Before(issued) {
		c.refuse("/due_date", "must not be before issue_date")
	}
}

// date gives the day, if there is one. time.Parse refuses days that no calendar has; the year 0 is none either.
func (c *checker) date(pointer, text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, false
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || day.Year() < 1 {
		c.refuse(pointer, "must be a day of the calendar, YYYY-MM-DD, in the years 0001 to 9999")
		return time.Time{}, false
	}
	return day, true
}

func (c *checker) checkCustomer() {
	customer := c.request.Customer
	c.required("/customer/name", customer.Name)
	c.text("/customer/name", customer.Name, maxName, "")
	switch {
	case customer.Country == "":
		c.refuse("/customer/country", "is missing (EN 16931 BR-11)")
	case !isCountry(customer.Country):
		c.refuse("/customer/country", "must be a country code of ISO 3166-1 such as DE, in capitals")
	}
	if customer.VATID != "" {
		c.identifier("/customer/vat_id", customer.VATID, maxVATID)
	}
	c.text("/customer/email", customer.Email, maxEmail, "")
	c.text("/customer/address", customer.Address, maxAddress, lineBreaks)
}

func (c *checker) checkNotes() {
	c.text("/note", c.request.Note, maxNote, lineBreaks)
	if n := len(c.request.Metadata); n > maxMetadata {
		c.refuse("/metadata", "has %d members; at most %d are allowed", n, maxMetadata)
		return
	}
	seen := make(map[string]bool, len(c.request.Metadata))
	for _, name := range slices.Sorted(maps.Keys(c.request.Metadata)) {
		pointer := string(jsontext.Pointer("/metadata").AppendToken(name))
		c.required(pointer, name)
		c.text(pointer, name, maxMetadataKey, "")
		c.text(pointer, c.request.Metadata[name], maxMetadataValue, lineBreaks)
		if seen[identity(name)] {
			c.refuse(pointer, "stands twice, in two spellings of the same Unicode text")
		}
		seen[identity(name)] = true
	}
}

func (c *checker) checkCurrency() {
	digits, ok := currency.GetDigits(c.request.Currency)
	c.digits = int32(digits)
	if !ok {
		c.digits = -1
		c.refuse("/currency", "must be a currency code of ISO 4217 such as EUR, in capitals")
	}
}

func (c *checker) checkOrderTotal() {
	total := c.request.OrderTotal
	if total == nil {
		c.amount("/expected_gross", c.request.ExpectedGross)
		return
	}
	if c.amount("/order_total", total) && !total.Value().IsPositive() {
		c.refuse("/order_total", "must be above 0")
	}
	c.amount("/expected_gross", c.request.ExpectedGross)
}

// identifier is a required text that tells things apart.
func (c *checker) identifier(pointer, value string, limit int) {
	switch {
	case value == "":
		c.refuse(pointer, "is missing")
	case tooLong(value, limit):
		c.refuse(pointer, "has more than %d characters", limit)
	case !isIdentifier(value):
		c.refuse(pointer, "must have no blanks around it and only visible characters")
	}
}

func (c *checker) required(pointer, value string) {
	if strings.TrimSpace(value) == "" {
		c.refuse(pointer, "is missing")
	}
}

// text is for people: any length up to limit, no control characters but those allowed.
func (c *checker) text(pointer, value string, limit int, allowed string) {
	switch {
	case tooLong(value, limit):
		c.refuse(pointer, "has more than %d characters", limit)
	case hasControl(value, allowed):
		c.refuse(pointer, "has a control character")
	}
}

// amount is a sum of money in the request's currency: no more decimals than the currency has.
func (c *checker) amount(pointer string, d *erpapi.Decimal) bool {
	if d == nil {
		return false
	}
	if !c.number(pointer, d) {
		return false
	}
	if c.digits >= 0 && !d.Value().Equal(d.Value().Truncate(c.digits)) {
		c.refuse(pointer, "has more decimals than %s, which has %d", c.request.Currency, c.digits)
		return false
	}
	return true
}

// number is any decimal within the bounds of the database's columns.
func (c *checker) number(pointer string, d *erpapi.Decimal) bool {
	switch {
	case !d.Valid():
		c.refuse(pointer, "must be a plain decimal number such as 12.50")
	case d.Value().Abs().GreaterThan(maxAmount()):
		c.refuse(pointer, "is beyond %s", maxAmount())
	default:
		return true
	}
	return false
}

// maxAmount is the greatest amount, quantity or price, as the columns' constraints have it.
func maxAmount() decimal.Decimal { return decimal.New(1, 15) }

package ordergen

import (
	"fmt"
	"strings"

	"github.com/shopspring/decimal"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
)

func (m *maker) shopOrder() crm.Order {
	at := pick(m, shopMarkets)
	o := crm.Order{Currency: at.currency, Customer: m.customer(at, "Test Customer %d")}
	o.Customer.VATID = "" // consumers have none
	if m.oneIn(3) {
		o.Customer.Address = ""
	}
	for range 1 + m.IntN(4) {
		rate := at.standard[0]
		if m.oneIn(4) {
			rate = at.standard[1]
		}
		o.Lines = append(o.Lines, m.line(at, standard(rate)))
	}
	o.IssueDate = m.day(0)
	if m.oneIn(2) {
		o.ExpectedGross = amount(gross(o.Lines, digitsOf(o.Currency)), digitsOf(o.Currency))
	}
	if m.oneIn(6) {
		o.Note = "Please leave the parcel at the door; danke schön!"
	}
	o.Metadata = map[string]string{"payment": pick(m, []string{"card", "transfer", "wallet"})}
	return o
}

func (m *maker) crmOrder() crm.Order {
	at := pick(m, markets)
	how := m.treatment(at)
	o := crm.Order{Currency: at.currency, Customer: m.customer(at, pick(m, at.names))}
	if how.category == "O" || !how.buyerID && m.oneIn(2) { // BR-O-2: no VAT id where there is no VAT
		o.Customer.VATID = ""
	}
	m.decorate(&o)
	switch chance := m.IntN(100); {
	case chance < 65:
		m.oneInvoice(&o, at, how)
	case chance < 78:
		m.advanceAndRest(&o, at, how, true)
	case chance < 83:
		m.advanceAndRest(&o, at, how, false)
	default:
		m.parts(&o, at, how)
	}
	return o
}

// treatment chooses how the VAT of an order is dealt with, out of what can be where the customer is.
func (m *maker) treatment(at market) treatment {
	usual := standard(at.standard[0])
	choices := []treatment{usual, usual, usual, usual, exempt}
	switch {
	case at.eu:
		choices = append(choices, reverseCharge, intraEU)
	default:
		choices = append(choices, export, export, outOfScope)
	}
	return pick(m, choices)
}

func (m *maker) customer(at market, name string) erpapi.Customer {
	number := 1 + m.IntN(400)
	return erpapi.Customer{
		Name: fmt.Sprintf(name, number), Country: at.country, VATID: fmt.Sprintf("%s%09d", at.country, number),
		Email: fmt.Sprintf("orders-%d@customer.example", number), Address: fmt.Sprintf(at.address, 1+number%80),
	}
}

const story = "Delivery as agreed; Teillieferungen sind möglich. Merci de vérifier la quantité à la réception. 納品書を同封します。 "

func (m *maker) decorate(o *crm.Order) {
	if m.oneIn(3) {
		v := int64(1 + m.IntN(3))
		o.Version = &v
	}
	if m.oneIn(4) {
		o.MessageID = "msg-" + m.id
	}
	switch m.IntN(20) {
	case 0:
		o.Note = strings.Repeat(story, 8)
	case 1, 2, 3:
		o.Note = story
	}
	o.Metadata = map[string]string{"sales_team": fmt.Sprintf("team-%d", 1+m.IntN(5))}
	if m.oneIn(2) {
		o.Metadata["po_number"] = fmt.Sprintf("PO/%04d/%d", m.IntN(10_000), m.number)
	}
	if m.oneIn(10) {
		o.Metadata["project"] = "Проект «Пример» № 7"
	}
}

// line makes a line of a whole or fractional quantity, one in five of them with a discount.
func (m *maker) line(at market, how treatment) erpapi.Line {
	p := pick(m, products)
	digits := digitsOf(at.currency)
	cents := decimal.NewFromInt(int64(100*p.least + m.IntN(100*(p.most-p.least))))
	price := round(cents.Mul(decimal.NewFromInt(at.milli)).Shift(-5), digits)
	quantity := decimal.NewFromInt(int64(1 + m.IntN(12)))
	if p.decimals > 0 {
		quantity = quantity.Add(decimal.New(int64(m.IntN(1000)), -3).Truncate(p.decimals))
	}
	l := erpapi.Line{SKU: p.sku, Description: p.name, Quantity: amount(quantity, p.decimals), UnitPrice: amount(price, digits)}
	if m.oneIn(5) {
		share := decimal.NewFromInt(pick(m, []int64{3, 5, 10, 25}))
		off := quantity.Mul(price).Mul(share).Shift(-2).RoundDown(digits)
		if off.IsPositive() {
			l.Discount = amount(off, digits)
		}
	}
	how.apply(&l)
	return l
}

func (m *maker) lines(at market, how treatment, count int) []erpapi.Line {
	lines := make([]erpapi.Line, count)
	for i := range lines {
		lines[i] = m.line(at, how)
	}
	return lines
}

// mixable is what may stand beside how on one invoice: not subject to VAT stands alone (BR-O-11).
func (m *maker) mixable(at market, how treatment) treatment {
	if how.category == "O" {
		return how
	}
	return pick(m, []treatment{how, standard(at.standard[len(at.standard)-1]), exempt})
}

package invoice

import (
	"fmt"

	"invoicebridge/internal/erpapi"
)

// Decimals behind the point that the columns hold. More are an error, not a cut.
const (
	maxDecimals     = 6
	maxRateDecimals = 4
)

const maxRate = 100 // percent

func (c *checker) checkLines() {
	lines := c.request.Lines
	if len(lines) == 0 {
		c.refuse("/lines", "is missing: an invoice has at least one line")
	}
	if len(lines) > maxLines {
		c.refuse("/lines", "has %d lines; at most %d are allowed", len(lines), maxLines)
		return
	}
	for i := range lines {
		at := fmt.Sprintf("/lines/%d", i)
		c.checkItem(at, &lines[i])
		c.checkPrice(at, &lines[i])
		c.checkVAT(at, &lines[i])
	}
	c.checkCategoriesTogether()
}

func (c *checker) checkItem(at string, l *erpapi.Line) {
	if l.SKU == "" && l.Description == "" {
		c.refuse(at+"/description", "is missing: a line has a sku or a description (EN 16931 BR-25)")
	}
	if l.SKU != "" {
		c.identifier(at+"/sku", l.SKU, maxSKU)
	}
	c.text(at+"/description", l.Description, maxDescription, lineBreaks)
	c.text(at+"/exemption_reason", l.ExemptionReason, maxReason, "")
}

// checkPrice: quantities and prices may be negative, for deductions. A price may be finer than the currency (0.0125
// EUR a piece), unless the currency has no smaller unit at all: then a fraction is a mistake (1980.50 JPY).
func (c *checker) checkPrice(at string, l *erpapi.Line) {
	if c.columnNumber(at+"/quantity", l.Quantity, maxDecimals) && l.Quantity.Value().IsZero() {
		c.refuse(at+"/quantity", "must not be 0")
	}
	if c.columnNumber(at+"/unit_price", l.UnitPrice, maxDecimals) && c.digits == 0 && !l.UnitPrice.Value().IsInteger() {
		c.refuse(at+"/unit_price", "must be a whole number: %s has no decimals", c.request.Currency)
	}
	if l.Discount != nil && c.columnNumber(at+"/discount", l.Discount, maxDecimals) {
		c.amount(at+"/discount", l.Discount) // EN 16931 BR-DEC-24
	}
}

func (c *checker) checkVAT(at string, l *erpapi.Line) {
	category, ok := vatCategoryOf(l.VATCategory)
	if !ok {
		c.refuse(at+"/vat_category", "must be one of S, Z, E, AE, K, G, O")
		return
	}
	c.checkRate(at+"/vat_rate", l.VATRate, category)
	switch given := l.ExemptionReason != ""; {
	case category.reason == reasonRequired && !given:
		c.refuse(at+"/exemption_reason", "is missing: category %s needs one (%s)", category.code, category.cite(10))
	case category.reason == reasonForbidden && given:
		c.refuse(at+"/exemption_reason", "must be absent with category %s (%s)", category.code, category.cite(10))
	}
}

// checkRate never takes a missing rate for 0, nor for any other.
func (c *checker) checkRate(pointer string, rate *erpapi.Decimal, category vatCategory) {
	if rate == nil && category.rate == rateNone {
		return
	}
	if !c.columnNumber(pointer, rate, maxRateDecimals) {
		return
	}
	switch value := rate.Value(); {
	case category.rate == ratePositive && !value.IsPositive():
		c.refuse(pointer, "must be above 0 with category %s (%s)", category.code, category.cite(5))
	case category.rate != ratePositive && !value.IsZero():
		c.refuse(pointer, "must be 0 with category %s (%s)", category.code, category.cite(5))
	case value.IntPart() > maxRate || value.IntPart() == maxRate && !value.IsInteger():
		c.refuse(pointer, "must be at most %d percent", maxRate)
	}
}

// checkCategoriesTogether checks what one line's category demands of the whole invoice. Each mistake is told once.
func (c *checker) checkCategoriesTogether() {
	categories := map[string]vatCategory{}
	for _, l := range c.request.Lines {
		category, ok := vatCategoryOf(l.VATCategory)
		if _, seen := categories[l.VATCategory]; !ok || seen {
			continue
		}
		categories[l.VATCategory] = category
		switch given := c.request.Customer.VATID != ""; {
		case category.needsVATID && !given:
			c.refuse("/customer/vat_id", "is missing: category %s needs it (%s)", category.code, category.cite(2))
		case category.forbidVATID && given:
			c.refuse("/customer/vat_id", "must be absent with category %s (%s)", category.code, category.cite(2))
		}
	}
	for _, category := range categories {
		if category.alone && len(categories) > 1 {
			c.refuse("/lines", "category %s does not go with another on one invoice (%s)", category.code, category.cite(11))
		}
	}
}

// columnNumber is a required decimal that a column holds without a cut.
func (c *checker) columnNumber(pointer string, d *erpapi.Decimal, decimals int32) bool {
	if d == nil {
		c.refuse(pointer, "is missing")
		return false
	}
	if !c.number(pointer, d) {
		return false
	}
	if d.Decimals() > decimals {
		c.refuse(pointer, "has %d decimals; at most %d are allowed", d.Decimals(), decimals)
		return false
	}
	return true
}

package invoice

import "fmt"

// vatCategory is what EN 16931 (section 6.4.2.8 and its rules BR-S to BR-O) demands of a line with this category code.
//
// AE, K, G and O have one meaning each, and the norm itself gives the text of it; so a missing reason leaves no
// question and the VAT breakdown carries that text. E may mean anything: its reason must be given.
type vatCategory struct {
	code string
	// rule is the family of rules in EN 16931, as in BR-AE-5.
	rule string

	rate   rateRule
	reason reasonRule
	// normReason is the text that rule -10 of the family prescribes, or none.
	normReason string

	needsVATID  bool // rule -2: the buyer's VAT id is part of what makes the category apply
	forbidVATID bool // BR-O-2
	alone       bool // BR-O-11: no other category on the same invoice
}

type rateRule int

const (
	ratePositive rateRule = iota
	rateZero
	rateNone // absent; 0 is taken as absent
)

type reasonRule int

const (
	reasonOptional reasonRule = iota
	reasonRequired
	reasonForbidden
)

func vatCategoryOf(code string) (vatCategory, bool) {
	switch code {
	case "S": // standard rate
		return vatCategory{code: code, rule: "BR-S", rate: ratePositive, reason: reasonForbidden}, true
	case "Z": // zero rated
		return vatCategory{code: code, rule: "BR-Z", rate: rateZero, reason: reasonForbidden}, true
	case "E": // exempt
		return vatCategory{code: code, rule: "BR-E", rate: rateZero, reason: reasonRequired}, true
	case "AE": // reverse charge
		return vatCategory{code: code, rule: "BR-AE", rate: rateZero, needsVATID: true, normReason: "Reverse charge"}, true
	case "K": // intra-community supply
		return vatCategory{code: code, rule: "BR-IC", rate: rateZero, needsVATID: true,
			normReason: "Intra-community supply"}, true
	case "G": // export
		return vatCategory{code: code, rule: "BR-G", rate: rateZero, normReason: "Export outside the EU"}, true
	case "O": // not subject to VAT
		return vatCategory{code: code, rule: "BR-O", rate: rateNone, forbidVATID: true, alone: true,
			normReason: "Not subject to VAT"}, true
	}
	return vatCategory{}, false
}

// cite names one rule of the category's family.
func (c vatCategory) cite(number int) string { return fmt.Sprintf("EN 16931 %s-%d", c.rule, number) }

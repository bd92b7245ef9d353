package crm

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/jsondiff"
)

// maxTold is how many differing members a divergence names with their values.
const maxTold = 10

// difference is one place at which an invoice is not what was asked for.
type difference struct {
	kind         DivergenceKind
	ours, theirs string
}

// frozenRequest is a request as it was sent, or what its retention has left of it.
type frozenRequest struct {
	text []byte
	// hash is of the text as it was sent, also where that has been minimised since: it alone says whether an invoice was
	// made from this request.
	hash      hash
	minimised bool
}

// contentDifferences compares an invoice with the request that was frozen for it: member by member, then the totals. At
// most one difference of each kind.
func contentDifferences(request frozenRequest, inv *erpapi.Invoice) []difference {
	var amount, customer difference
	add := func(d *difference, kind DivergenceKind, ours, theirs string) {
		d.kind = kind
		d.ours, d.theirs = joined(d.ours, ours), joined(d.theirs, theirs)
	}
	canonical, pointers, err := request.differing(inv)
	if err != nil {
		add(&amount, DivergenceAmountDiffers, "the frozen request", "an invoice that can't be compared with it: "+err.Error())
	}
	for _, p := range pointers[:min(len(pointers), maxTold)] {
		ours, theirs := p+" "+request.member(p), p+" "+memberAt(canonical, p)
		if p == "/customer" || strings.HasPrefix(p, "/customer/") {
			add(&customer, DivergenceCustomerDiffers, ours, theirs)
		} else {
			add(&amount, DivergenceAmountDiffers, ours, theirs)
		}
	}
	if ours, theirs := totalsDifference(inv); ours != "" {
		add(&amount, DivergenceAmountDiffers, ours, theirs)
	}
	return slices.DeleteFunc([]difference{amount, customer}, func(d difference) bool { return d.kind == "" })
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// differing gives the canonical form of the request that the invoice was made from, and where it differs from the frozen
// one.
func (r frozenRequest) differing(inv *erpapi.Invoice) (canonical []byte, pointers []string, err error) {
	canonical, err = inv.Request().Canonical()
	switch {
	case err != nil:
		return nil, nil, err
	case !r.minimised && sha256.Sum256(r.text) != r.hash:
		return nil, nil, errors.New("the stored request is not the one that was frozen")
	case sha256.Sum256(canonical) == r.hash:
		return canonical, nil, nil
	}
	if pointers, err = jsondiff.Differences(r.text, canonical); err != nil || !r.minimised {
		return canonical, pointers, err
	}
	// What was dropped looks different, too. Every amount was kept; if none of those differs, it is the customer, or words.
	kept := slices.DeleteFunc(slices.Clone(pointers), func(p string) bool { return memberAt(r.text, p) == absentMember })
	if len(kept) == 0 {
		return canonical, []string{"/customer"}, nil
	}
	return canonical, kept, nil
}

// member is the value at a pointer.
func (r frozenRequest) member(pointer string) string {
	value := memberAt(r.text, pointer)
	if r.minimised && value == absentMember {
		return "(no longer kept)"
	}
	return value
}

// absentMember is told where a side has no value.
const absentMember = "nothing"

// memberAt is the value at a pointer that Differences gave, or absentMember.
func memberAt(text jsontext.Value, pointer string) string {
	for token := range jsontext.Pointer(pointer).Tokens() {
		var members map[string]jsontext.Value
		var items []jsontext.Value
		switch i, err := strconv.Atoi(token); {
		case text.Kind() == '{' && json.Unmarshal(text, &members) == nil:
			text = members[token]
		case text.Kind() == '[' && json.Unmarshal(text, &items) == nil && err == nil && i < len(items):
			text = items[i]
		default:
			text = nil
		}
	}
	if text == nil {
		return absentMember
	}
	return excerpt(string(text))
}

// totalsDifference says where an invoice's totals are not those of its lines, or not what the source computed. Empty if
// they are.
func totalsDifference(inv *erpapi.Invoice) (ours, theirs string) {
	lines := decimal.Zero
	for _, line := range inv.Lines {
		lines = lines.Add(amountOf(line.Net))
	}
	vat := decimal.Zero
	for _, group := range inv.VATBreakdown {
		vat = vat.Add(amountOf(group.VAT))
	}
	for _, total := range []struct {
		name string
		want decimal.Decimal
		got  string
	}{
		{"net", lines, inv.Net}, {"vat", vat, inv.VAT}, {"gross", lines.Add(vat), inv.Gross}, {"payable", lines.Add(vat), inv.Payable},
	} {
		if !amountOf(total.got).Equal(total.want) {
			return fmt.Sprintf("%s %s by its lines", total.name, total.want), fmt.Sprintf("%s %q", total.name, excerpt(total.got))
		}
	}
	if e := inv.ExpectedGross; e != nil && !e.Value().Equal(amountOf(inv.Gross)) {
		return "gross " + e.String() + " expected", "gross " + inv.Gross
	}
	return "", ""
}

// maxAmountLength bounds the texts that are read as amounts: a number that long is none.
const maxAmountLength = 64

// amountOf is zero for what is no amount: it differs from the amount that it should be.
func amountOf(text string) decimal.Decimal {
	d, err := erpapi.ParseDecimal(text)
	if err != nil || len(text) > maxAmountLength {
		return decimal.Zero
	}
	return d.Value()
}

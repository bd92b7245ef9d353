package answer

import (
	"fmt"
	"net/http"
	"time"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/target"
)

// Reader says what one record means at one kind of target: State, and Resume where something is left to do.
type Reader func(Record) target.Located

// Located says what the answer to a look-up by external reference means: 200 with {"items": [...]}.
//
// Absent takes an empty list, said by the target's own interface. A 404 of this address, a list of other people's
// records (so the question was not understood), a missing list: all inconclusive.
func Located(x outbound.Exchange, q target.Query, now time.Time, read Reader) target.Located {
	l, usable := common(x, now)
	if !usable {
		return l
	}
	list, ok := Decode[struct {
		Items *[]Record `json:"items"`
	}](x.Body)
	if !ok || list.Items == nil || q.Reference == "" {
		l.Detail += ", which is no list of records under a reference"
		return l
	}
	if len(*list.Items) == 0 {
		l.State, l.Detail = target.Absent, "the target has nothing under this reference"
		return l
	}
	var ours []Record
	for _, r := range *list.Items {
		if r.ExternalReference == q.Reference {
			ours = append(ours, r)
		}
	}
	if len(ours) == 0 {
		l.Detail = "the target answered with records of other references: it did not understand the question"
		return l
	}
	return choose(l, ours, q, read)
}

// LocatedByID says what the answer to a look-up by the target's own id means. found is false where the target itself
// says that it has no such id.
func LocatedByID(x outbound.Exchange, q target.Query, now time.Time, read Reader) (l target.Located, found bool) {
	l, usable := common(x, now)
	if !usable {
		return l, x.Err != nil || x.Status != http.StatusNotFound || !outbound.IsJSON(x.Header)
	}
	record, ok := Decode[Record](x.Body)
	if !ok || record.ID != q.Known {
		l.Detail += ", which is not the record that was asked for"
		return l, true
	}
	return choose(l, []Record{record}, q, read), true
}

func common(x outbound.Exchange, now time.Time) (l target.Located, usable bool) {
	l = target.Located{
		State: target.Inconclusive, Detail: describe(x), RetryAfter: outbound.RetryAfter(x.Header, now),
		HTTPStatus: x.Status, Answer: x.Body,
	}
	isJSON := outbound.IsJSON(x.Header)
	l.NotAuthorised = x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden && isJSON // as in Sent
	return l, x.Err == nil && x.Status == http.StatusOK && isJSON
}

// choose takes what is furthest of several records of one reference, and names the others that are, or may become,
// registrations, too.
func choose(l target.Located, records []Record, q target.Query, read Reader) target.Located {
	best, bestRank := -1, -1
	found := make([]target.Located, len(records))
	for i, r := range records {
		if r.Whose(q.Reference, q.Number) == Foreign {
			l.ForeignInvoice = r.Name()
			l.Detail = fmt.Sprintf("under our reference the target has another invoice: %.100s", r.Name())
			return l
		}
		found[i] = read(r)
		if rank := rankOf(found[i].State); rank > bestRank {
			best, bestRank = i, rank
		}
	}
	chosen, record := found[best], records[best]
	l.State, l.Resume, l.ID = chosen.State, chosen.Resume, record.ID
	l.Detail = fmt.Sprintf("the target has %.100s with status %.40q", record.ID, record.Status)
	if record.Detail != "" {
		l.Detail += ": " + record.Detail
	}
	if l.State == target.Landed {
		l.Reference = record.Reference
	}
	l.Warnings, l.Reasons = Texts(record.Warnings), Reasons(record.Errors)
	for i, r := range records {
		if i != best && found[i].State != target.StateRejected {
			l.Duplicates = append(l.Duplicates, r.ID)
		}
	}
	return l
}

// rankOf: a rejection counts only where nothing else is there.
func rankOf(s target.State) int {
	switch s {
	case target.Landed:
		return 3
	case target.StateHeld:
		return 2
	case target.StateRejected:
		return 0
	default:
		return 1
	}
}

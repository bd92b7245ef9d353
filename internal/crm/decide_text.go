package crm

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/kept"
	"invoicebridge/internal/problem"
)

// maxDetail bounds what is kept of an answer's words, in bytes.
const maxDetail = 1000

func problemType(x *erpapi.Exchange) problem.Type {
	if x.Problem == nil {
		return ""
	}
	return x.Problem.Type
}

func statusText(x *erpapi.Exchange) string {
	return strings.TrimSpace(strconv.Itoa(x.Status) + " " + http.StatusText(x.Status))
}

func errorText(err error) string {
	if err == nil {
		return "no cause known"
	}
	return err.Error()
}

// answerText is what the ERP itself said; of answers that are no problem documents only the status is told, since
// their bodies may hold anything.
func answerText(x *erpapi.Exchange) string {
	if x.Problem == nil {
		return "The answer was " + statusText(x) + " without a problem document."
	}
	var b strings.Builder
	b.WriteString(cmp.Or(x.Problem.Detail, "The answer was "+statusText(x)+", "+string(x.Problem.Type)+"."))
	for _, e := range x.Problem.Errors {
		b.WriteString(" " + e.Pointer + ": " + e.Detail)
	}
	if len(x.Problem.Differences) > 0 {
		b.WriteString(" Differs at " + strings.Join(x.Problem.Differences, ", ") + ".")
	}
	if ref := x.Problem.Invoice; ref != nil {
		b.WriteString(" Invoice " + ref.Number + " of operation " + ref.OperationKey + ".")
	}
	return strings.TrimSpace(b.String())
}

// keepable is text of the ERP's, fit for a column and a log line, without our token.
func keepable(text, token string) string { return kept.Text(text, token, maxDetail) }

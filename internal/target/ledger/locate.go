package ledger

import (
	"context"
	"net/http"
	"net/url"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/internal/answer"
)

// Locate asks the ledger what it has under our reference. An entry that was created and not posted is Held with Resume.
// It changes nothing. Query.Known is not needed: this look-up also shows whether there is more than one entry.
func (c *Client) Locate(ctx context.Context, q target.Query) target.Located {
	x := c.http.Do(ctx, outbound.Request{
		Method: http.MethodGet, Header: c.header(),
		URL: outbound.Address(c.base, url.Values{"external_reference": {q.Reference}}, "entries"),
	})
	return answer.Located(x, q, c.now(), read)
}

// read: an entry that somebody has voided is neither a registration nor the proof that none is wanted; a person did it
// and a person has to say.
func read(r answer.Record) target.Located {
	switch {
	case r.Status == "posted" && r.Reference != "":
		return target.Located{State: target.Landed}
	case r.Status == "posted":
		return target.Located{State: target.StateHeld}
	case r.Status == "draft" && r.ID != "":
		return target.Located{State: target.StateHeld, Resume: true}
	default:
		return target.Located{State: target.Inconclusive}
	}
}

package einvoice

import (
	"context"
	"net/url"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/internal/answer"
)

// Locate asks the gateway what it has: by its own id where q has one, else by our reference. It changes nothing.
func (c *Client) Locate(ctx context.Context, q target.Query) target.Located {
	if q.Known == "" {
		return c.locateByReference(ctx, q)
	}
	l, found := answer.LocatedByID(c.get(ctx, nil, "documents", q.Known), q, c.now(), read)
	if found {
		return l
	}
	// It gave us this id and does not know it any more. Whatever that is, it is no proof of absence.
	l = c.locateByReference(ctx, q)
	if l.State == target.Absent {
		l.State = target.Inconclusive
		l.Detail = "the target does not know the id that it gave us, and has nothing under our reference"
	}
	return l
}

func (c *Client) locateByReference(ctx context.Context, q target.Query) target.Located {
	x := c.get(ctx, url.Values{"external_reference": {q.Reference}}, "documents")
	return answer.Located(x, q, c.now(), read)
}

// read: "error" is no end here. Gateways have reported it for documents that the authority had taken and confirmed later,
// and what was sent again meanwhile became a duplicate. A status that is not known says nothing.
func read(r answer.Record) target.Located {
	switch r.Status {
	case "accepted":
		if r.Reference == "" {
			return target.Located{State: target.StateHeld}
		}
		return target.Located{State: target.Landed}
	case "held", "processing", "error":
		return target.Located{State: target.StateHeld}
	case "rejected":
		return target.Located{State: target.StateRejected}
	default:
		return target.Located{State: target.Inconclusive}
	}
}

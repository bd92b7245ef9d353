package einvoice

import (
	"context"
	"net/http"
	"net/url"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/internal/answer"
)

// Codes of refusals that mean something else than "this document is wrong".
const (
	codeInProgress       = "in_progress"
	codeAlreadySubmitted = "already_submitted"
	codeKeyReused        = "key_reused"
)

// Send makes one attempt to submit s, with one request. It returns once the answer is there, the time limit is over or
// ctx has ended, and never fails otherwise than by its outcome. Within the gateway's key window it may be called again
// with the same Submission; Submission.Known is not needed for that and not looked at.
func (c *Client) Send(ctx context.Context, s target.Submission) target.Sent {
	if s.Key == "" || s.Reference == "" || len(s.Document) == 0 {
		return target.Sent{
			Outcome: target.Misconfigured, NotApplied: true,
			Detail: "nothing was sent: a submission needs a key, a reference and a document",
		}
	}
	header := c.header()
	header.Set("Idempotency-Key", keyHeader(s.Key))
	header.Set("Content-Type", "application/json")
	x := c.http.Do(ctx, outbound.Request{
		Method: http.MethodPost, Header: header, Body: s.Document,
		URL: outbound.Address(c.base, url.Values{"external_reference": {s.Reference}}, "documents"),
	})
	sent, decided := answer.Sent(x, c.now())
	switch {
	case decided:
		return sent
	case x.Status == http.StatusConflict:
		return conflict(sent, s)
	case answer.Refused(x.Status):
		return refused(sent)
	default:
		return taken(sent, s)
	}
}

// conflict: only the codes of the interface are believed; any other 409 may mean anything.
func conflict(sent target.Sent, s target.Submission) target.Sent {
	refusal, _ := answer.Decode[answer.Refusal](sent.Answer)
	refusal.Apply(&sent)
	switch refusal.Code {
	case codeAlreadySubmitted:
		return answer.Duplicate(sent, refusal.Original, s)
	case codeInProgress:
		sent.Outcome = target.Wait // for the first request, which is still being worked on
	case codeKeyReused:
		sent.Outcome = target.Foreign
	default:
		sent.Outcome = target.Lost
	}
	return sent
}

func refused(sent target.Sent) target.Sent {
	if refusal, _ := answer.Decode[answer.Refusal](sent.Answer); refusal.Code == codeKeyReused {
		// The key has had its effect, with another document than this one. That is no rejection of this one.
		refusal.Apply(&sent)
		sent.Outcome = target.Foreign
		return sent
	}
	return answer.Rejected(sent)
}

// taken reads what the gateway has now.
func taken(sent target.Sent, s target.Submission) target.Sent {
	record, ok := answer.Decode[answer.Record](sent.Answer)
	switch {
	case !ok || record.ID == "":
		sent.Outcome = target.Lost
		sent.Detail += ", which is not the answer to a submission"
		return sent
	case record.Whose(s.Reference, s.Number) == answer.Foreign:
		return answer.Another(sent, record)
	}
	sent.ID, sent.Warnings = record.ID, answer.Texts(record.Warnings)
	located := read(record)
	if record.Detail != "" {
		sent.Detail = record.Detail
	}
	switch located.State {
	case target.Landed:
		sent.Outcome, sent.Reference = target.Accepted, record.Reference
	case target.StateHeld:
		sent.Outcome = target.Held
	case target.StateRejected:
		sent.Outcome, sent.NotApplied, sent.Reasons = target.Rejected, true, answer.Reasons(record.Errors)
	default:
		sent.Outcome = target.Lost
	}
	return sent
}

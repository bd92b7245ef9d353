package ledger

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/internal/answer"
)

// post posts entry id. There is an entry, so whatever goes wrong here, it has not "not been applied"; and because
// posting is repeatable, a lost answer is no doubt: the entry is held until a repeat says that it is posted.
func (c *Client) post(ctx context.Context, s target.Submission, id string) target.Sent {
	body, err := json.Marshal(struct {
		ExternalReference string `json:"external_reference"`
	}{s.Reference})
	if err != nil {
		return target.Sent{Outcome: target.Misconfigured, ID: id, Detail: "nothing was sent: the reference is not UTF-8"}
	}
	sent, decided := answer.Sent(c.send(ctx, body, "entries", id, "post"), c.now())
	switch {
	case sent.HTTPStatus == http.StatusNotFound:
		// It gave us this id and does not know it any more: the entry has been removed, or hidden. Locate has to tell.
		sent.Outcome = target.Lost
		sent.Detail = "the entry that was to be posted is not there: " + sent.Detail
	case decided:
		sent.Resume = true
		if sent.Outcome == target.Lost || sent.Outcome == target.NotSent {
			sent.Outcome = target.Held
		}
		sent.Detail = "the entry is there, posting it has not succeeded: " + sent.Detail
	case answer.Succeeded(sent.HTTPStatus):
		sent = posted(sent, s, id)
	case answer.Refused(sent.HTTPStatus):
		sent = answer.Rejected(sent)
		sent.Resume = true // once the reason is gone (a closed period)
		sent.Detail = "the entry is there, the ledger refuses to post it: " + sent.Detail
	default:
		sent.Outcome, sent.Resume = target.Held, true
	}
	sent.NotApplied = false
	if sent.ID == "" && sent.Outcome != target.Foreign {
		sent.ID = id
	}
	return sent
}

func posted(sent target.Sent, s target.Submission, id string) target.Sent {
	record, ok := answer.Decode[answer.Record](sent.Answer)
	switch {
	case !ok || record.ID != id:
		sent.Outcome, sent.Resume = target.Held, true
		sent.Detail += ", which is not the answer to posting this entry"
	case record.Whose(s.Reference, s.Number) == answer.Foreign:
		sent = answer.Another(sent, record)
	case read(record).State == target.Landed:
		sent.Outcome, sent.Reference, sent.Warnings = target.Accepted, record.Reference, answer.Texts(record.Warnings)
	default:
		sent.Outcome, sent.Resume = target.Held, true
		sent.Detail = "the entry is there, its status after posting is " + record.Status
	}
	return sent
}

package ledger

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/internal/answer"
)

const codeAlreadyEntered = "already_entered"

// Send makes one attempt: it creates the entry and posts it, or, where s.Known is set, only posts that one. It returns
// once the answers are there, a time limit is over or ctx has ended, and never fails otherwise than by its outcome.
//
// Once there is an entry, an outcome never says NotApplied, and Resume says whether posting may be tried again.
// Without Known it must be called again only after NotApplied, or after an absence that is proven (see Capabilities).
func (c *Client) Send(ctx context.Context, s target.Submission) target.Sent {
	if s.Known != "" {
		return c.post(ctx, s, s.Known)
	}
	sent := c.create(ctx, s)
	if sent.Outcome != target.Held {
		return sent
	}
	return c.post(ctx, s, sent.ID)
}

// creation is the body of POST /entries. It is made of the submission alone: the same bytes each time.
type creation struct {
	ExternalReference string         `json:"external_reference"`
	Number            string         `json:"number,omitzero"`
	Document          jsontext.Value `json:"document"`
}

// create gives Held with the new entry's id, or how it failed.
func (c *Client) create(ctx context.Context, s target.Submission) target.Sent {
	body, err := json.Marshal(creation{s.Reference, s.Number, s.Document})
	if err != nil || s.Reference == "" || len(s.Document) == 0 {
		return target.Sent{
			Outcome: target.Misconfigured, NotApplied: true,
			Detail: "nothing was sent: a submission needs a reference and a document in JSON",
		}
	}
	sent, decided := answer.Sent(c.send(ctx, body, "entries"), c.now())
	switch {
	case decided:
		return sent
	case sent.HTTPStatus == http.StatusConflict:
		refusal, _ := answer.Decode[answer.Refusal](sent.Answer)
		refusal.Apply(&sent)
		if refusal.Code == codeAlreadyEntered {
			return existing(answer.Duplicate(sent, refusal.Original, s))
		}
		sent.Outcome = target.Lost
		return sent
	case answer.Refused(sent.HTTPStatus):
		return answer.Rejected(sent)
	}
	record, ok := answer.Decode[answer.Record](sent.Answer)
	switch {
	case !ok || record.ID == "":
		sent.Outcome = target.Lost
		sent.Detail += ", which is not the answer to a creation"
		return sent
	case record.Whose(s.Reference, s.Number) == answer.Foreign:
		return answer.Another(sent, record)
	}
	sent.Outcome, sent.ID, sent.Resume = target.Held, record.ID, true
	return sent
}

// existing: an entry of ours that has no reference yet was created and not posted. Only Locate can tell for sure.
func existing(sent target.Sent) target.Sent {
	if sent.Reference == "" {
		sent.ID = ""
	}
	return sent
}

func (c *Client) send(ctx context.Context, body []byte, elements ...string) outbound.Exchange {
	header := c.header()
	header.Set("Content-Type", "application/json")
	return c.http.Do(ctx, outbound.Request{
		Method: http.MethodPost, URL: outbound.Address(c.base, nil, elements...), Header: header, Body: body,
	})
}

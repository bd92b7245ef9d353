package targetsim

import (
	"errors"
	"fmt"
	"time"
)

// The kinds, as they stand in paths and in the journal.
const (
	einvoiceKind = "einvoice"
	ledgerKind   = "ledger"
)

// thing is a document at the gateway or an entry in the ledger. Everything that becomes of it by itself is laid down
// when it is made, as moments on the simulator's clock; only posting is added later. So the state at any moment
// follows from the journal alone.
type thing struct {
	Kind              string    `json:"kind"`
	ID                string    `json:"id"`
	Reference         string    `json:"reference"` // what it is registered under, told once it is
	ExternalReference string    `json:"external_reference"`
	Number            string    `json:"number"`
	Key               string    `json:"key,omitzero"`
	Sum               string    `json:"sum"` // SHA-256 of the document, hex
	Received          time.Time `json:"received"`
	Effective         time.Time `json:"effective"` // from here on it exists and counts
	Visible           time.Time `json:"visible"`   // from here on look-ups find it
	Decided           time.Time `json:"decided"`   // until here its status is Before, then Finally (gateway)
	Before            string    `json:"before,omitzero"`
	Finally           string    `json:"finally,omitzero"`
	Warnings          []string  `json:"warnings,omitzero"`

	posted bool // ledger; from its own event
}

// counts says whether t is an effect at this moment: it exists and was not rejected for good.
func (t *thing) counts(at time.Time) bool {
	return t.exists(at) && (at.Before(t.Decided) || t.Finally != "rejected")
}

func (t *thing) exists(at time.Time) bool { return !at.Before(t.Effective) }

func (t *thing) visible(at time.Time) bool { return t.exists(at) && !at.Before(t.Visible) }

func (t *thing) status(at time.Time) string {
	switch {
	case t.Kind == ledgerKind && t.posted:
		return "posted"
	case t.Kind == ledgerKind:
		return "draft"
	case at.Before(t.Decided):
		return t.Before
	default:
		return t.Finally
	}
}

// thingView is a thing as its interface tells it.
type thingView struct {
	ID                string       `json:"id"`
	ExternalReference string       `json:"external_reference"`
	Number            string       `json:"number"`
	Status            string       `json:"status,omitzero"`
	Reference         string       `json:"reference,omitzero"`
	Warnings          []string     `json:"warnings,omitzero"`
	Errors            []reasonView `json:"errors,omitzero"`
}

type listView struct {
	Items []thingView `json:"items"`
}

func (t *thing) view(at time.Time) thingView {
	v := thingView{ID: t.ID, ExternalReference: t.ExternalReference, Number: t.Number, Status: t.status(at)}
	switch v.Status {
	case "accepted", "posted":
		v.Reference, v.Warnings = t.Reference, t.Warnings
	case "rejected":
		v.Errors = []reasonView{{"/customer/vat_id", "BR-CO-9", "the authority does not know this id"}}
	}
	return v
}

// Request is one request that reached the simulator, whatever became of it.
type Request struct {
	At                time.Time `json:"at"`
	Kind              string    `json:"kind"`
	Operation         string    `json:"operation"` // submit, create, post, lookup
	ExternalReference string    `json:"external_reference"`
	Key               string    `json:"key,omitzero"`
	BodySum           string    `json:"body_sum,omitzero"` // SHA-256, hex
	Fault             Fault     `json:"fault"`
}

// event is one line of the journal. Exactly one member is set.
type event struct {
	Made    *thing   `json:"made,omitzero"`
	Posted  string   `json:"posted,omitzero"` // id of the entry
	Request *Request `json:"request,omitzero"`
	Moved   string   `json:"moved,omitzero"` // how far the clock was moved forward
}

// state is what the events add up to.
type state struct {
	things      []*thing
	byID        map[string]*thing
	byKey       map[string][]*thing
	byReference map[kindReference][]*thing
	requests    []Request
	moved       time.Duration
}

type kindReference struct{ kind, reference string }

func newState() *state {
	return &state{
		byID: map[string]*thing{}, byKey: map[string][]*thing{}, byReference: map[kindReference][]*thing{},
	}
}

// apply adds an event. It fails only on events that this program does not write.
func (st *state) apply(e event) error {
	switch {
	case e.Made != nil:
		st.add(e.Made)
	case e.Posted != "":
		entry, ok := st.byID[e.Posted]
		if !ok {
			return fmt.Errorf("entry %s is posted and was never made", e.Posted)
		}
		entry.posted = true
	case e.Request != nil:
		st.requests = append(st.requests, *e.Request)
	case e.Moved != "":
		d, err := time.ParseDuration(e.Moved)
		if err != nil {
			return fmt.Errorf("read how far the clock was moved: %w", err)
		}
		st.moved += d
	default:
		return errors.New("an event without content")
	}
	return nil
}

func (st *state) add(t *thing) {
	st.things = append(st.things, t)
	st.byID[t.ID] = t
	if t.Key != "" {
		st.byKey[t.Key] = append(st.byKey[t.Key], t)
	}
	of := kindReference{t.Kind, t.ExternalReference}
	st.byReference[of] = append(st.byReference[of], t)
}

// moment is t without its monotonic reading and in UTC, as it comes back from the journal.
func moment(t time.Time) time.Time { return t.Round(0).UTC() }

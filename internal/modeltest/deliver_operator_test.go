package modeltest

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

const source = "crm-1"

// people are who presses buttons: two persons, and a program with a token.
func people() []audit.By {
	person := func(name string) audit.By {
		return audit.By{Actor: name, Reason: "model", Account: uuid.NewSHA1(uuid.Nil, []byte(name))}
	}
	return []audit.By{person("ada"), person("ben"), {Actor: "token", Reason: "model"}}
}

func somebody(rt *rapid.T) audit.By { return rapid.SampledFrom(people()).Draw(rt, "who") }

// acted takes note of what became of a button: what was done is in the audit once, and what is refused changes nothing.
func (b *bridge) acted(rt *rapid.T, what string, err error) (done bool) {
	switch {
	case err == nil:
		b.acts++
		return true
	case problem.Is(err, problem.WrongState), problem.Is(err, problem.Forbidden):
		return false
	}
	rt.Fatalf("%s: %v", what, err)
	return false
}

// press is an action on one operation. What is refused changes nothing about it.
func (b *bridge) press(rt *rapid.T, what string, id uuid.UUID, act func(key string) error) (done bool) {
	before := b.look(rt, id)
	done = b.acted(rt, what, act(before.Key))
	if after := b.look(rt, id); !done && after != before {
		rt.Fatalf("%s was refused, and has changed the operation\nbefore %+v\nafter  %+v", what, before, after)
	}
	return done
}

func (b *bridge) replay(rt *rapid.T) { b.replayOne(rt, b.one(rt)) }

func (b *bridge) replayOne(rt *rapid.T, id uuid.UUID) {
	b.press(rt, "replay", id, func(key string) error {
		_, err := b.service.Replay(context.Background(), b.tenant, key, people()[0])
		return err
	})
}

func (b *bridge) cancel(rt *rapid.T) {
	b.press(rt, "cancel", b.one(rt), func(key string) error {
		_, err := b.service.Cancel(context.Background(), b.tenant, key, somebody(rt))
		return err
	})
}

// pauseOrResume presses either button. A pause does not end an attempt that has begun.
func (b *bridge) pauseOrResume(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "pause") {
		_, err := b.service.PauseSource(context.Background(), b.tenant, source, somebody(rt))
		b.toggled(rt, "pause", err, true)
		return
	}
	_, err := b.service.ResumeSource(context.Background(), b.tenant, source, somebody(rt))
	b.toggled(rt, "resume", err, false)
}

func (b *bridge) toggled(rt *rapid.T, what string, err error, paused bool) {
	if done := b.acted(rt, what, err); done == (b.paused == paused) {
		rt.Fatalf("%s: done is %v, and paused was %v", what, done, b.paused)
	}
	b.paused = paused
}

// propose says what became of an operation, truly or not: that is for the second person and the ERP to find out.
func (b *bridge) propose(rt *rapid.T) {
	id, who := b.one(rt), somebody(rt)
	b.press(rt, "propose", id, func(key string) error {
		p := crm.Proposal{Verdict: crm.VerdictNotApplied, Evidence: "seen"}
		if said := rapid.SampledFrom([]string{"not applied", "applied", "applied", "made up"}).Draw(rt, "verdict"); said != "not applied" {
			p.Verdict, p.Invoice = crm.VerdictApplied, &erpapi.InvoiceLink{ID: uuid.NewSHA1(uuid.Nil, []byte(key)).String(), Number: "INV-0"}
			if invoice, there := b.erp.Invoices()[key]; there && said == "applied" {
				p.Invoice = &erpapi.InvoiceLink{ID: invoice.ID, Number: invoice.Number}
			}
		}
		r, err := b.service.ProposeResolution(context.Background(), b.tenant, key, p, who)
		if err == nil {
			b.proposals = append(b.proposals, proposal{r.ID, id, who, p})
		}
		return err
	})
}

// proposal is one that was taken.
type proposal struct {
	id, operation uuid.UUID
	by            audit.By
	said          crm.Proposal
}

// decide has somebody approve, decline or withdraw. The ERP may be silent while people tell the truth; a lie has to be found
// by asking it, and so is not told while it is silent. Nobody can vouch for "not applied" while a request is under way.
func (b *bridge) decide(rt *rapid.T) {
	if len(b.proposals) == 0 {
		rt.Skip("nothing is proposed")
	}
	p, who := rapid.SampledFrom(b.proposals).Draw(rt, "proposal"), somebody(rt)
	ctx := context.Background()
	switch rapid.SampledFrom([]string{"approve", "approve", "approve", "decline", "withdraw"}).Draw(rt, "decision") {
	case "approve":
		b.approve(rt, p, who)
	case "decline":
		if b.press(rt, "decline", p.operation, func(string) error {
			_, err := b.service.DeclineResolution(ctx, b.tenant, p.id, who)
			return err
		}) && !second(p, who) {
			rt.Fatalf("%s has declined what %s has proposed", who.Actor, p.by.Actor)
		}
	case "withdraw":
		if b.press(rt, "withdraw", p.operation, func(string) error {
			_, err := b.service.WithdrawResolution(ctx, b.tenant, p.id, who)
			return err
		}) && who.Actor != p.by.Actor {
			rt.Fatalf("%s has withdrawn what %s has proposed", who.Actor, p.by.Actor)
		}
	}
}

func (b *bridge) approve(rt *rapid.T, p proposal, who audit.By) {
	key := b.look(rt, p.operation).Key
	if b.weather.waitingFor(key) && p.said.Verdict == crm.VerdictNotApplied {
		rt.Skip("a request is under way")
	}
	borneOut := b.isTrue(p, key)
	b.deaf = borneOut && rapid.Bool().Draw(rt, "the ERP is silent")
	defer func() { b.deaf = false }()
	done := b.press(rt, "approve", p.operation, func(string) error {
		_, err := b.service.ApproveResolution(context.Background(), b.tenant, p.id, who)
		return err
	})
	if done && !borneOut {
		rt.Fatalf("%+v was approved, and is not so", p.said)
	}
	if done && !second(p, who) {
		rt.Fatalf("%s has approved what %s has proposed", who.Actor, p.by.Actor)
	}
}

// isTrue says whether the ERP's books bear a proposal out.
func (b *bridge) isTrue(p proposal, key string) bool {
	invoice, there := b.erp.Invoices()[key]
	if p.said.Verdict == crm.VerdictNotApplied {
		return !there
	}
	return there && *p.said.Invoice == erpapi.InvoiceLink{ID: invoice.ID, Number: invoice.Number}
}

// second says whether somebody is a second person to a proposal.
func second(p proposal, who audit.By) bool {
	return who.Account != uuid.Nil && who.Account != p.by.Account
}

// books are the ERP's, to be asked before an approval; silent where the model says so.
type books struct {
	b      *bridge
	client crm.Books
}

func (s books) GetOperation(ctx context.Context, token, key string) erpapi.Exchange {
	if s.b.deaf {
		return erpapi.Exchange{}
	}
	return s.client.GetOperation(ctx, token, key)
}

func (s books) ListInvoices(_ context.Context, _ string, q erpapi.InvoiceQuery) erpapi.InvoiceListing {
	listing := erpapi.InvoiceListing{Read: true}
	for _, invoice := range s.b.erp.Invoices() {
		if invoice.Source == q.Source && invoice.Order == q.Order && invoice.Role == q.Role {
			listing.Items = append(listing.Items, erpapi.ListedInvoice{Invoice: &invoice})
		}
	}
	return listing
}

// checkActs: what people have done is in the audit, each once, and nothing else is.
func (b *bridge) checkActs(rt *rapid.T) {
	var n int
	if err := b.pool.QueryRow(context.Background(), "SELECT count(*) FROM audit_entries WHERE tenant_id = $1", b.tenant).Scan(&n); err != nil {
		rt.Fatal(err)
	}
	if n != b.acts {
		rt.Fatalf("%d actions of people were done, %d are in the audit", b.acts, n)
	}
}

// operate is one button, pressed while something else goes on.
func (b *bridge) operate(rt *rapid.T) {
	buttons := []string{"none", "none", "replay", "cancel", "pause or resume", "propose"}
	button := rapid.SampledFrom(buttons).Draw(rt, "an operator presses")
	do := []func(*rapid.T){nil, nil, b.replay, b.cancel, b.pauseOrResume, b.propose}[slices.Index(buttons, button)]
	if do != nil && len(b.ids) > 0 {
		do(rt)
	}
}

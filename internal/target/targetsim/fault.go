package targetsim

// Fault is one way in which the simulator misbehaves, once.
type Fault string

// The faults. About says what each does.
const (
	None             Fault = "none"
	AcceptSilent     Fault = "accept-silent"
	AcceptLate       Fault = "accept-late"
	ResetBefore      Fault = "reset-before"
	ResetAfter       Fault = "reset-after"
	HalfAnswer       Fault = "half-answer"
	DuplicateOwn     Fault = "duplicate-own"
	DuplicateBare    Fault = "duplicate-bare"
	DuplicateForeign Fault = "duplicate-foreign"
	Held             Fault = "held"
	Error            Fault = "error"
	RejectedLater    Fault = "rejected-later"
	Hidden           Fault = "hidden"
	Slow             Fault = "slow"
	Warnings         Fault = "warnings"
	Reject           Fault = "reject"
	Busy             Fault = "busy"
	Throttled        Fault = "throttled"
	BadGateway       Fault = "bad-gateway"
	HTML             Fault = "html"
	Redirect         Fault = "redirect"
	Unauthorised     Fault = "unauthorised"
	PostLost         Fault = "post-lost"
	PostBadGateway   Fault = "post-bad-gateway"
	PostReject       Fault = "post-reject"
	LookupHTML404    Fault = "lookup-html-404"
	LookupError      Fault = "lookup-error"
	LookupSilent     Fault = "lookup-silent"
	LookupNonsense   Fault = "lookup-nonsense"
)

// phase is the kind of request that a fault meets.
type phase string

const (
	sending    phase = "sending"
	posting    phase = "posting"
	looking    phase = "looking up"
	noSpecific phase = "" // None fits all
)

// behaviour is what a Fault means.
type behaviour struct {
	fault Fault
	phase phase
	about string
	// without: the request has no effect.
	without bool
	// shape changes what the request makes.
	shape func(t *thing, c Config)
	// reply is what is answered instead of the truth.
	reply func(t *thing) reply
}

// behaviours is the table of all faults, in the order in which help lists them.
func behaviours() []behaviour {
	return []behaviour{
		{fault: None, phase: noSpecific, about: "works as documented"},
		{fault: AcceptSilent, phase: sending, about: "takes effect and never answers", reply: silence},
		{
			fault: AcceptLate, phase: sending, about: "answers 502 and takes effect later (--late)", reply: badGateway,
			shape: func(t *thing, c Config) {
				late := t.Received.Add(c.Late)
				t.Effective, t.Visible, t.Decided = late, late, late
			},
		},
		{fault: ResetBefore, phase: sending, about: "breaks the connection, no effect", without: true, reply: reset},
		{fault: ResetAfter, phase: sending, about: "takes effect and breaks the connection", reply: reset},
		{fault: HalfAnswer, phase: sending, about: "takes effect and breaks off in the middle of the answer", reply: half},
		{fault: DuplicateOwn, phase: sending, about: "takes effect and says \"had that before\", naming it", reply: duplicateOwn},
		{fault: DuplicateBare, phase: sending, about: "takes effect and says \"had that before\", naming nothing", reply: duplicateBare},
		{fault: DuplicateForeign, phase: sending, about: "takes effect and says \"had that before\", naming another invoice", reply: duplicateForeign},
		{fault: Held, phase: sending, about: "holds the document (--held), then accepts it (gateway)", shape: undecided("held", "accepted")},
		{fault: Error, phase: sending, about: "shows the document as an error (--held), then accepts it (gateway)", shape: undecided("error", "accepted")},
		{fault: RejectedLater, phase: sending, about: "holds the document (--held), then rejects it (gateway)", shape: undecided("held", "rejected")},
		{
			fault: Hidden, phase: sending, about: "takes effect, breaks the connection and does not find it for a while (--hidden)", reply: reset,
			shape: func(t *thing, c Config) { t.Visible = t.Effective.Add(c.Hidden) },
		},
		{fault: Slow, phase: sending, about: "works as documented, slowly (--slow)"},
		{fault: Warnings, phase: sending, about: "accepts with warnings", shape: func(t *thing, _ Config) {
			t.Warnings = []string{"buyer's VAT id could not be verified", "due date is on a Sunday"}
		}},
		{fault: Reject, phase: sending, about: "answers 422 with details, no effect", without: true, reply: rejection},
		{fault: Busy, phase: sending, about: "answers 503 with Retry-After, no effect", without: true, reply: busy},
		{fault: Throttled, phase: sending, about: "answers 429 with Retry-After, no effect", without: true, reply: throttled},
		{fault: BadGateway, phase: sending, about: "answers 502, no effect", without: true, reply: badGateway},
		{fault: HTML, phase: sending, about: "answers 200 with a log-in page, no effect", without: true, reply: loginPage},
		{fault: Redirect, phase: sending, about: "answers 307 to another address, no effect", without: true, reply: redirect},
		{fault: Unauthorised, phase: sending, about: "answers 401, no effect", without: true, reply: unauthorised},
		{fault: PostLost, phase: posting, about: "posts the entry and breaks the connection (ledger)", reply: reset},
		{fault: PostBadGateway, phase: posting, about: "answers 502 to posting, no effect (ledger)", without: true, reply: badGateway},
		{fault: PostReject, phase: posting, about: "answers 422 to posting, no effect (ledger)", without: true, reply: rejection},
		{fault: LookupHTML404, phase: looking, about: "answers 404 with a load balancer's page", without: true, reply: page404},
		{fault: LookupError, phase: looking, about: "answers 500", without: true, reply: internalError},
		{fault: LookupSilent, phase: looking, about: "never answers", without: true, reply: silence},
		{fault: LookupNonsense, phase: looking, about: "answers with somebody else's records", without: true, reply: nonsense},
	}
}

// undecided: a ledger's entries know no decision of somebody else.
func undecided(until, finally string) func(*thing, Config) {
	return func(t *thing, c Config) {
		if t.Kind != einvoiceKind {
			return
		}
		t.Decided, t.Before, t.Finally = t.Received.Add(c.Held), until, finally
	}
}

func behaviourOf(f Fault) (behaviour, bool) {
	for _, b := range behaviours() {
		if b.fault == f {
			return b, true
		}
	}
	return behaviour{}, false
}

// About lists all faults with one line on each, for help.
func About() []struct{ Fault, Does string } {
	var list []struct{ Fault, Does string }
	for _, b := range behaviours() {
		list = append(list, struct{ Fault, Does string }{string(b.fault), b.about})
	}
	return list
}

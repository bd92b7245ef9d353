package app

import (
	"errors"
	"time"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/retention"
)

// ERPRetention says how long the ERP keeps what it need not keep for ever, and how fast it removes it
// (docs/retention.md). Zero values take the defaults.
type ERPRetention struct {
	LongestRetry time.Duration      `name:"longest-retry" env:"ERP_LONGEST_RETRY" default:"792h10m" help:"How long after its first use a key may still be sent by a caller; ERP_KEY_RETENTION must not be less. The default is the sum of the CRM side's: TOTAL_TIME, the rescue of a dead process's job (10m), CRM_RECONCILE_OVERLAP, MAX_SOURCE_DELAY."`
	Conflicts    time.Duration      `name:"conflict-retention" env:"ERP_CONFLICT_RETENTION" default:"8760h" help:"How long it is kept that a key came back with other content."`
	Divergences  time.Duration      `name:"divergence-retention" env:"ERP_DIVERGENCE_RETENTION" default:"8760h" help:"How long resolved divergences are kept."`
	Pace         retention.Pace     `embed:"" prefix:"purge-" envprefix:"ERP_"`
	Schedule     retention.Schedule `embed:"" prefix:"purge-" envprefix:"ERP_"`
}

// check gives the mistakes, with those against the retention of keys.
func (r ERPRetention) check(keyRetention time.Duration) error {
	mistakes := []error{
		validateRetention("ERP_CONFLICT_RETENTION", r.Conflicts), validateRetention("ERP_DIVERGENCE_RETENTION", r.Divergences),
		r.Pace.Mistakes("ERP_"), r.Schedule.Mistakes("ERP_"),
	}
	longest := orDefault(r.LongestRetry, retention.DefaultRetryTimes().Longest())
	keyRetention = orDefault(keyRetention, invoice.DefaultKeyRetention)
	switch {
	case longest < time.Hour:
		mistakes = append(mistakes, mistake("ERP_LONGEST_RETRY", "%s is less than an hour: callers may still be trying", longest))
	case keyRetention < time.Hour: // told already
	case keyRetention < longest:
		mistakes = append(mistakes, mistake("ERP_KEY_RETENTION", "%s is too small: callers may send a key again for up to ERP_LONGEST_RETRY=%s, "+
			"and a reservation must outlive that. Raise ERP_KEY_RETENTION, or lower ERP_LONGEST_RETRY if no caller tries for so long", keyRetention, longest))
	}
	return errors.Join(mistakes...)
}

func (r ERPRetention) keep() invoice.Keep {
	return invoice.Keep{Conflicts: r.Conflicts, Divergences: r.Divergences}
}

// CRMRetention says how long the CRM side keeps what it need not keep for ever, and how fast it removes it
// (docs/retention.md). Zero values take the defaults.
type CRMRetention struct {
	PersonalData   time.Duration      `name:"personal-data-retention" env:"CRM_PERSONAL_DATA_RETENTION" default:"8760h" help:"How long after their end orders and operations still hold names, addresses and texts. Key, claim, amounts and the invoice's number stay."`
	Attempts       time.Duration      `name:"attempt-retention" env:"CRM_ATTEMPT_RETENTION" default:"8760h" help:"How long after their operation's end attempts can be read."`
	Inbox          time.Duration      `name:"inbox-retention" env:"CRM_INBOX_RETENTION" default:"2160h" help:"How long a message is recognised by its id; MAX_SOURCE_DELAY must not be more."`
	MaxSourceDelay time.Duration      `name:"max-source-delay" env:"MAX_SOURCE_DELAY" default:"720h" help:"The longest that a source may deliver a message late, or again."`
	Pace           retention.Pace     `embed:"" prefix:"purge-" envprefix:"CRM_"`
	Schedule       retention.Schedule `embed:"" prefix:"purge-" envprefix:"CRM_"`
}

// check gives the mistakes, with those of the settings against each other. (That reconciliation finds customers to compare
// is checked with its own settings.)
func (r CRMRetention) check() error {
	keep := r.keep().WithDefaults()
	mistakes := []error{
		validateRetention("CRM_PERSONAL_DATA_RETENTION", keep.PersonalData),
		validateRetention("CRM_ATTEMPT_RETENTION", keep.Attempts), validateRetention("CRM_INBOX_RETENTION", keep.Inbox),
		r.Pace.Mistakes("CRM_"), r.Schedule.Mistakes("CRM_"),
	}
	if r.MaxSourceDelay < 0 {
		mistakes = append(mistakes, mistake("MAX_SOURCE_DELAY", "%s is negative", r.MaxSourceDelay))
	}
	delay := orDefault(r.MaxSourceDelay, retention.DefaultMaxSourceDelay)
	if keep.Inbox >= time.Hour && keep.Inbox < delay {
		mistakes = append(mistakes, mistake("CRM_INBOX_RETENTION", "%s is too small: a source may deliver a message again for up to MAX_SOURCE_DELAY=%s, "+
			"and what is not recognised by then could count as a new version", keep.Inbox, delay))
	}
	return errors.Join(mistakes...)
}

func (r CRMRetention) keep() crm.Keep {
	return crm.Keep{PersonalData: r.PersonalData, Attempts: r.Attempts, Inbox: r.Inbox}
}

func validateRetention(variable string, d time.Duration) error {
	if d != 0 && d < time.Hour {
		return mistake(variable, "%s is less than an hour", d)
	}
	return nil
}

// LongestRetry is how long after its first use a key may still be sent by this CRM side.
func (c CRMConfig) LongestRetry() time.Duration {
	return retention.RetryTimes{
		Total: orDefault(c.TotalTime, crm.DefaultTotalTime), Rescue: retention.RescueTime,
		ReconciliationWindow: c.Reconcile.overlap(),
		SourceDelay:          orDefault(c.Retention.MaxSourceDelay, retention.DefaultMaxSourceDelay),
	}.Longest()
}

// CheckTogether checks the settings of an ERP and a CRM side against each other, for whoever starts both. Each by itself
// knows only what it is told: the ERP its ERP_LONGEST_RETRY, the CRM side what the ERP's answers say.
func CheckTogether(erp ERPConfig, side CRMConfig) error {
	kept, longest := orDefault(erp.KeyRetention, invoice.DefaultKeyRetention), side.LongestRetry()
	if kept < longest {
		return mistake("ERP_KEY_RETENTION", "%s is too small: the CRM side may send a key again for up to %s "+
			"(TOTAL_TIME, the rescue of a dead process's job, CRM_RECONCILE_OVERLAP and MAX_SOURCE_DELAY), and a reservation must outlive that", kept, longest)
	}
	return nil
}

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
	ERPKeep      `embed:""`
	LongestRetry time.Duration      `name:"longest-retry" env:"ERP_LONGEST_RETRY" default:"792h10m" help:"How long after its first use a key may still be sent by a caller; ERP_KEY_RETENTION must not be less. The default is the sum of the CRM side's: TOTAL_TIME, the rescue of a dead process's job (10m), CRM_RECONCILE_OVERLAP, MAX_SOURCE_DELAY."`
	Schedule     retention.Schedule `embed:"" prefix:"purge-" envprefix:"ERP_"`
}

// ERPKeep is the part of ERPRetention that a purge by hand needs, too.
type ERPKeep struct {
	Conflicts   time.Duration  `name:"conflict-retention" env:"ERP_CONFLICT_RETENTION" default:"8760h" help:"How long it is kept that a key came back with other content."`
	Divergences time.Duration  `name:"divergence-retention" env:"ERP_DIVERGENCE_RETENTION" default:"8760h" help:"How long resolved divergences are kept."`
	Pace        retention.Pace `embed:"" prefix:"purge-" envprefix:"ERP_"`
}

// check gives the mistakes, with those against the retention of keys.
func (r ERPRetention) check(keyRetention time.Duration) error {
	mistakes := []error{r.ERPKeep.check(), r.Schedule.Mistakes("ERP_")}
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

func (k ERPKeep) check() error {
	return errors.Join(validateRetention("ERP_CONFLICT_RETENTION", k.Conflicts),
		validateRetention("ERP_DIVERGENCE_RETENTION", k.Divergences), k.Pace.Mistakes("ERP_"))
}

func (k ERPKeep) keep() invoice.Keep {
	return invoice.Keep{Conflicts: k.Conflicts, Divergences: k.Divergences}
}

// CRMRetention says how long the CRM side keeps what it need not keep for ever, and how fast it removes it
// (docs/retention.md). Zero values take the defaults.
type CRMRetention struct {
	CRMKeep  `embed:""`
	Schedule retention.Schedule `embed:"" prefix:"purge-" envprefix:"CRM_"`
}

// CRMKeep is the part of CRMRetention that a purge by hand needs, too.
type CRMKeep struct {
	PersonalData   time.Duration  `name:"personal-data-retention" env:"CRM_PERSONAL_DATA_RETENTION" default:"8760h" help:"How long after their end orders and operations still hold names, addresses and texts. Key, claim, amounts and the invoice's number stay."`
	Attempts       time.Duration  `name:"attempt-retention" env:"CRM_ATTEMPT_RETENTION" default:"8760h" help:"How long after their operation's end attempts can be read."`
	Inbox          time.Duration  `name:"inbox-retention" env:"CRM_INBOX_RETENTION" default:"2160h" help:"How long a message is recognised by its id, and how long what was refused can be read; MAX_SOURCE_DELAY must not be more."`
	Actions        time.Duration  `name:"action-retention" env:"CRM_ACTION_RETENTION" default:"8760h" help:"How long after their end replays of many, and after their decision resolutions, can be read. That they were made stays in the audit."`
	MaxSourceDelay time.Duration  `name:"max-source-delay" env:"MAX_SOURCE_DELAY" default:"720h" help:"The longest that a source may deliver a message late, or again."`
	Pace           retention.Pace `embed:"" prefix:"purge-" envprefix:"CRM_"`
}

func (r CRMRetention) check() error {
	return errors.Join(r.CRMKeep.check(), r.Schedule.Mistakes("CRM_"))
}

// check gives the mistakes, with those of the settings against each other. (That reconciliation finds customers to compare
// is checked with its own settings.)
func (k CRMKeep) check() error {
	keep := k.keep().WithDefaults()
	mistakes := []error{
		validateRetention("CRM_PERSONAL_DATA_RETENTION", keep.PersonalData),
		validateRetention("CRM_ATTEMPT_RETENTION", keep.Attempts), validateRetention("CRM_INBOX_RETENTION", keep.Inbox),
		validateRetention("CRM_ACTION_RETENTION", keep.Actions),
		k.Pace.Mistakes("CRM_"),
	}
	if k.MaxSourceDelay < 0 {
		mistakes = append(mistakes, mistake("MAX_SOURCE_DELAY", "%s is negative", k.MaxSourceDelay))
	}
	delay := orDefault(k.MaxSourceDelay, retention.DefaultMaxSourceDelay)
	if keep.Inbox >= time.Hour && keep.Inbox < delay {
		mistakes = append(mistakes, mistake("CRM_INBOX_RETENTION", "%s is too small: a source may deliver a message again for up to MAX_SOURCE_DELAY=%s, "+
			"and what is not recognised by then could count as a new version", keep.Inbox, delay))
	}
	return errors.Join(mistakes...)
}

func (k CRMKeep) keep() crm.Keep {
	return crm.Keep{PersonalData: k.PersonalData, Attempts: k.Attempts, Inbox: k.Inbox, Actions: k.Actions}
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

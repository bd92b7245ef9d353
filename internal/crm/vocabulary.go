package crm

// The vocabularies as lists, for what has to show each word from the start.

// Reasons are all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonAlreadyInvoiced, ReasonAnswerIncomplete, ReasonNoAnswer, ReasonInterrupted, ReasonServerError, ReasonNotReached, ReasonWaiting,
		ReasonNotAuthorised, ReasonConfiguration, ReasonConflict, ReasonRejected, ReasonRequestDamaged,
		ReasonResolved, ReasonResolvedNotApplied, ReasonCancelledByHand,
	}
}

// AttemptOutcomes are all outcomes that a Decision can have.
func AttemptOutcomes() []AttemptOutcome {
	return []AttemptOutcome{
		OutcomeDelivered, OutcomeReplayed, OutcomeLost, OutcomeWrongAnswer, OutcomeNotSent, OutcomeWait, OutcomeConflict, OutcomeRejected,
		OutcomeNotAuthorised,
	}
}

// Outcomes are all outcomes of a submitted order, none left out.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeCreated, OutcomeAlreadyThere, OutcomeChanged, OutcomeChangedAfterDelivery, OutcomeCancelled, OutcomeStale, OutcomeRefused,
	}
}

// Channels are all ways in.
func Channels() []Channel {
	return []Channel{ChannelAPI, ChannelImport, ChannelGenerate, ChannelManual}
}

package invoice

// The vocabularies as lists, for what has to show each word from the start.

// RegistrationReasons are all reasons of a registration.
func RegistrationReasons() []RegistrationReason {
	return []RegistrationReason{
		ReasonRejected, ReasonForeign, ReasonDuplicate, ReasonHeld, ReasonClaimed, ReasonNoAnswer, ReasonInconclusive, ReasonAbsent,
		ReasonProvenAbsent, ReasonNotSent, ReasonWaiting, ReasonNotAuthorised, ReasonConfiguration, ReasonWorkerDied, ReasonNothingIsSafe,
		ReasonSettledByHuman,
	}
}

// RegistrationOutcomes are all outcomes that a RegistrationObserver is told of.
func RegistrationOutcomes() []string {
	outcomes := []registrationOutcome{
		outcomeAccepted, outcomeRejected, outcomeAlreadyRegistered, outcomeForeign, outcomeNotSent, outcomeWait, outcomeNotAuthorised,
		outcomeWrongAnswer, outcomeLost, outcomeLanded, outcomeHeld, outcomeAbsent, outcomeInconclusive,
	}
	texts := make([]string, len(outcomes))
	for i, o := range outcomes {
		texts[i] = string(o)
	}
	return texts
}

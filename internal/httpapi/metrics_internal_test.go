package httpapi

import (
	"errors"
	"fmt"
	"runtime/debug"
	"testing"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

func TestEachResultOfIssuingIsCountedAsWhatItIs(t *testing.T) {
	t.Parallel()
	refused := func(p problem.Problem) invoice.Result {
		return invoice.Result{Err: fmt.Errorf("issue: %w", &p)}
	}
	for _, tc := range []struct {
		result invoice.Result
		want   issueResult
	}{
		{invoice.Result{Answer: &invoice.Answer{}}, issueCreated},
		{invoice.Result{Answer: &invoice.Answer{Replayed: true}}, issueReplayed},
		{refused(problem.Problem{Type: problem.IdempotencyKeyReused}), issueKeyReused},
		{refused(problem.Problem{Type: problem.AlreadyInvoiced, SameContent: true}), issueInvoicedSame},
		{refused(problem.Problem{Type: problem.AlreadyInvoiced}), issueInvoicedOther},
		{refused(problem.Problem{Type: problem.OperationInProgress}), issueInProgress},
		{refused(problem.Problem{Type: problem.InvalidInvoice}), issueInvalid},
		{refused(problem.Problem{Type: problem.Unavailable}), issueUnavailable},
		{refused(problem.Problem{Type: problem.NotFound}), issueRefusedByOther},
		{invoice.Result{Err: errors.New("disk full")}, issueFailed},
	} {
		if got := issueResultOf(tc.result); got != tc.want {
			t.Errorf("%v counts as %s, want %s", tc.result.Err, got, tc.want)
		}
	}
}

func TestALogInIsCountedByHowItEnded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, loginOK},
		{problem.New(problem.Unauthenticated, ""), loginRefused},
		{problem.New(problem.Forbidden, ""), loginRefused},
		{problem.New(problem.TooManyRequests, ""), loginThrottled},
		{problem.New(problem.Unavailable, ""), loginFailed},
		{errors.New("disk full"), loginFailed},
	} {
		if got := loginResult(tc.err); got != tc.want {
			t.Errorf("%v counts as %s, want %s", tc.err, got, tc.want)
		}
	}
}

func TestTheBuildIsNamedAlsoWhereNothingIsKnownOfIt(t *testing.T) {
	t.Parallel()
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, tc := range []struct {
		info              *debug.BuildInfo
		version, revision string
	}{
		{nil, "unknown", "unknown"},
		{&debug.BuildInfo{}, "unknown", "unknown"},
		{&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{setting("vcs.revision", "abc"), setting("vcs.modified", "false")}}, "v1.2.3", "abc"},
		{&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{setting("vcs.modified", "true"), setting("vcs.revision", "abc")}}, "(devel)", "abc-modified"},
	} {
		if version, revision := build(tc.info, tc.info != nil); version != tc.version || revision != tc.revision {
			t.Errorf("%+v is told as %s %s, want %s %s", tc.info, version, revision, tc.version, tc.revision)
		}
	}
}

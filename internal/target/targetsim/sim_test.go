package targetsim_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/targetsim"
)

func TestTheGatewayHonoursAKeyForItsWindowAndNoLonger(t *testing.T) {
	t.Parallel()
	f := setup(t, targetsim.Config{KeyWindow: time.Hour})
	c := f.clients["einvoice"]
	first := c.Send(t.Context(), submission())
	f.advance(t, time.Hour-1)
	if again := c.Send(t.Context(), submission()); again.Reference != first.Reference || !again.Registered() {
		t.Errorf("within the window: got %+v, want the first answer's reference %s", again, first.Reference)
	}
	other := submission()
	other.Document = []byte(`{"number":"INV-1","gross":"1.00"}`)
	if sent := c.Send(t.Context(), other); sent.Outcome != target.Foreign {
		t.Errorf("another document under the key: got %+v", sent)
	}
	if n := f.Count(reference); n != 1 {
		t.Fatalf("%d effects within the window, want 1", n)
	}
	f.advance(t, 1)
	c.Send(t.Context(), submission())
	if n := f.Count(reference); n != 2 {
		t.Errorf("%d effects after the window, want the second one", n)
	}
	if sum := f.Effects(""); sum.Duplicates != 1 || sum.References != 1 {
		t.Errorf("got %+v, want 1 duplicate of 1 reference", sum)
	}
	if l := c.Locate(t.Context(), query()); len(l.Duplicates) != 1 {
		t.Errorf("found %+v, want the duplicate named", l)
	}
}

func TestTheSameKeyWaitsForTheEffectThatComesLater(t *testing.T) {
	t.Parallel()
	f := setup(t, targetsim.Config{})
	f.script(t, targetsim.AcceptLate)
	c := f.clients["einvoice"]
	c.Send(t.Context(), submission())
	if sent := c.Send(t.Context(), submission()); sent.Outcome != target.Wait || sent.RetryAfter != 2*time.Minute {
		t.Errorf("before the effect: got %+v", sent)
	}
	f.advance(t, 30*time.Minute)
	if sent := c.Send(t.Context(), submission()); !sent.Registered() {
		t.Errorf("after the effect: got %+v", sent)
	}
	if n := f.Count(reference); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func TestTheLedgerMakesAnEntryForEveryCreation(t *testing.T) {
	t.Parallel()
	f := setup(t, targetsim.Config{})
	for range 3 {
		f.clients["ledger"].Send(t.Context(), submission())
	}
	if n := f.Count(reference); n != 3 {
		t.Errorf("%d entries, want 3", n)
	}
}

func TestOneKeyAtTheSameTimeHasOneEffect(t *testing.T) {
	t.Parallel()
	f := setup(t, inFile(t))
	var wg sync.WaitGroup
	references := make([]string, 20)
	for i := range references {
		wg.Go(func() { references[i] = f.clients["einvoice"].Send(t.Context(), submission()).Reference })
	}
	wg.Wait()
	for _, r := range references {
		if r == "" || r != references[0] {
			t.Errorf("got references %q, want one", references)
			break
		}
	}
	if n := f.Count(reference); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func TestATornLineIsCutOffAndADamagedOneIsRefused(t *testing.T) {
	t.Parallel()
	cfg := inFile(t)
	f := setup(t, cfg)
	f.clients["einvoice"].Send(t.Context(), submission())
	want := f.Effects("")
	whole, err := os.ReadFile(cfg.Journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.Journal, slices.Concat(whole, []byte(`{"made":{"kind":"einv`)), 0o600); err != nil {
		t.Fatal(err)
	}
	again := setup(t, cfg)
	if diff := cmp.Diff(want, again.Effects("")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again.clients["ledger"].Send(t.Context(), submission()) // goes where the torn line was
	if third := setup(t, cfg); third.Count(reference) != 2 {
		t.Errorf("%d effects, want 2", third.Count(reference))
	}
	for _, damage := range []string{"nonsense\n", "{}\n", `{"posted":"ledger-000009"}` + "\n", `{"moved":"far"}` + "\n"} {
		if err := os.WriteFile(cfg.Journal, slices.Concat(whole, []byte(damage)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := targetsim.Open(cfg); err == nil || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("%q: got %v, want line 3 refused", damage, err)
		}
	}
}

func TestWhatCantBeWrittenHasNoEffect(t *testing.T) {
	t.Parallel()
	f := setup(t, inFile(t))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if sent := f.clients["einvoice"].Send(t.Context(), submission()); sent.Outcome != target.Lost || sent.HTTPStatus != 500 {
		t.Errorf("got %+v", sent)
	}
	if n := f.Count(reference); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
}

func TestTheTokenIsAskedFor(t *testing.T) {
	t.Parallel()
	f := setup(t, targetsim.Config{})
	res := do(t, http.MethodGet, f.url+"/einvoice/documents?external_reference=op-1", "")
	if res.status != http.StatusUnauthorized {
		t.Errorf("got %d", res.status)
	}
}

func TestScriptsComeBeforeTheDiceAndTheReferencesOwnBeforeAny(t *testing.T) {
	t.Parallel()
	f := setup(t, targetsim.Config{Rates: map[targetsim.Fault]float64{targetsim.Reject: 1}})
	f.script(t, targetsim.Held, targetsim.None)
	if err := f.Script(targetsim.AnyReference, targetsim.Throttled); err != nil {
		t.Fatal(err)
	}
	var got []target.Outcome
	for i := range 4 {
		s := submission()
		s.Key = fmt.Sprint(i)
		got = append(got, f.clients["einvoice"].Send(t.Context(), s).Outcome)
	}
	want := []target.Outcome{target.Held, target.Accepted, target.Wait, target.Rejected}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTheSameSeedThrowsTheSameFaults(t *testing.T) {
	t.Parallel()
	throw := func(seed uint64) (faults []targetsim.Fault) {
		f := setup(t, targetsim.Config{Seed: seed, Rates: map[targetsim.Fault]float64{
			targetsim.Reject: 0.3, targetsim.Throttled: 0.3, targetsim.LookupError: 0.9,
		}})
		for i := range 40 {
			s := submission()
			s.Key = fmt.Sprint(i)
			f.clients["einvoice"].Send(t.Context(), s)
		}
		for _, r := range f.Requests("") {
			faults = append(faults, r.Fault)
		}
		return faults
	}
	a := throw(7)
	if diff := cmp.Diff(a, throw(7)); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
	if cmp.Equal(a, throw(8)) {
		t.Error("another seed throws the same")
	}
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for says, cfg := range map[string]targetsim.Config{
		`"no-such"`:  {Rates: map[targetsim.Fault]float64{"no-such": 0.1}},
		"held":       {Rates: map[targetsim.Fault]float64{targetsim.Held: 1.1}},
		"add up":     {Rates: map[targetsim.Fault]float64{targetsim.Held: 0.6, targetsim.Error: 0.6}},
		"key window": {KeyWindow: -1},
		"no-folder":  {Journal: "no-folder/x.jsonl"},
	} {
		if _, err := targetsim.Open(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %q", err, says)
		}
	}
	f := setup(t, targetsim.Config{})
	if err := f.Script("op-1", "no-such"); err == nil {
		t.Error("a fault that does not exist was scripted")
	}
	if err := f.Advance(-1); err == nil {
		t.Error("the clock went backwards")
	}
}

func TestEverythingCanBeReadAndSteeredByHTTP(t *testing.T) {
	t.Parallel()
	f := setup(t, targetsim.Config{})
	for path, body := range map[string]string{
		"/sim/script":  `{"external_reference":"*","faults":["accept-late"]}`,
		"/sim/advance": `{"by":"1h"}`,
	} {
		if res := do(t, http.MethodPost, f.url+path, body); res.status != http.StatusNoContent {
			t.Errorf("%s: got %+v", path, res)
		}
		if res := do(t, http.MethodPost, f.url+path, `{"by":"soon","faults":["no-such"]}`); res.status != http.StatusBadRequest {
			t.Errorf("%s with nonsense: got %+v", path, res)
		}
	}
	f.clients["einvoice"].Send(t.Context(), submission())
	if res := do(t, http.MethodPost, f.url+"/sim/advance", `{"by":"30m"}`); res.status != http.StatusNoContent {
		t.Errorf("got %+v", res)
	}
	var sum targetsim.Summary
	if err := json.Unmarshal([]byte(do(t, http.MethodGet, f.url+"/sim/effects?external_reference=op-1", "").body), &sum); err != nil {
		t.Fatal(err)
	}
	want := targetsim.Summary{
		Now: fixedClock().Add(90 * time.Minute), References: 1, Effects: 1, Requests: 1,
		Items: []targetsim.Effect{{Kind: "einvoice", ExternalReference: reference, Numbers: []string{"INV-1"}, Count: 1, IDs: []string{"einvoice-000001"}}},
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("effects (-want +got)\n%s", diff)
	}
	var log struct{ Items []targetsim.Request }
	if err := json.Unmarshal([]byte(do(t, http.MethodGet, f.url+"/sim/requests", "").body), &log, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.Requests(""), log.Items); diff != "" {
		t.Errorf("requests (-want +got)\n%s", diff)
	}
}

type result struct {
	status int
	body   string
}

func do(t *testing.T, method, url, body string) result {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return result{res.StatusCode, string(text)}
}

func TestAStopEndsWhatIsNeverAnswered(t *testing.T) {
	t.Parallel()
	sim, err := targetsim.Open(targetsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Script(reference, targetsim.AcceptSilent); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- sim.Serve(ctx, l) }()
	sent := make(chan target.Sent, 1)
	c := newClients(t, "http://"+l.Addr().String())["einvoice"]
	go func() { sent <- c.Send(t.Context(), submission()) }()
	for deadline := time.Now().Add(patience); sim.Count(reference) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the request has not arrived")
		}
		<-time.After(time.Millisecond)
	}
	stop()
	if err := <-served; err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := <-sent; got.Outcome != target.Lost {
		t.Errorf("got %+v", got)
	}
}

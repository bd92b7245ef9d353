package target_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/target"
)

func TestCapabilitiesThatWouldMakeADuplicateAreRefusedByName(t *testing.T) {
	t.Parallel()
	const longest = 30 * time.Second
	for name, tc := range map[string]struct {
		capabilities target.Capabilities
		says         []string // empty: accepted
	}{
		"nothing promised":              {target.Capabilities{}, nil},
		"keyed":                         {target.Capabilities{Keyed: true, KeyWindow: 24 * time.Hour}, nil},
		"keyed without a window":        {target.Capabilities{Keyed: true}, []string{"key_window"}},
		"window as long as a request":   {target.Capabilities{Keyed: true, KeyWindow: longest}, []string{"key_window"}},
		"window without keys":           {target.Capabilities{KeyWindow: time.Hour}, []string{"key_window"}},
		"absence proves":                {target.Capabilities{Locatable: true, AbsenceAuthoritative: true, SettleTime: longest + 1}, nil},
		"settles within a request":      {target.Capabilities{Locatable: true, AbsenceAuthoritative: true, SettleTime: longest}, []string{"settle_time"}},
		"settles at once":               {target.Capabilities{Locatable: true, AbsenceAuthoritative: true}, []string{"settle_time"}},
		"absence where nobody can ask":  {target.Capabilities{AbsenceAuthoritative: true, SettleTime: time.Hour}, []string{"absence_authoritative"}},
		"settle time for nothing":       {target.Capabilities{Locatable: true, SettleTime: time.Hour}, []string{"settle_time"}},
		"everything wrong is told once": {target.Capabilities{Keyed: true, AbsenceAuthoritative: true}, []string{"key_window", "settle_time", "absence_authoritative"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.capabilities.Check(longest)
			if (err == nil) != (len(tc.says) == 0) {
				t.Fatalf("got %v, want one that says %q", err, tc.says)
			}
			for _, word := range tc.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not name %s", err, word)
				}
			}
		})
	}
	if err := (target.Capabilities{}).Check(0); err == nil {
		t.Error("a request without a time limit was accepted")
	}
}

func TestASecretIsShownByNothing(t *testing.T) {
	t.Parallel()
	const value = "s3cr3t"
	type holder struct {
		Open   target.Secret
		hidden target.Secret
	}
	h := holder{target.NewSecret(value), target.NewSecret(value)}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", h, &h, h.Open)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("settings", "secret", h.Open, "holder", h)
	slog.New(slog.NewTextHandler(&out, nil)).Info("settings", "secret", h.hidden, "holder", h)
	encoded, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	if text := out.String(); strings.Contains(text, value) || strings.Contains(text, fmt.Sprintf("%x", value)) {
		t.Errorf("shown: %s", text)
	}
	if h.Open.Reveal() != value || h.Open.IsZero() || !(target.Secret{}).IsZero() {
		t.Error("the value is lost")
	}
}

func TestACredentialIsResolvedByReferenceOnly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"GATEWAY_TOKEN": "from-env", "TWO_WORDS": "Bearer hush", "LONG": strings.Repeat("h", 1<<20)}
	for name, tc := range map[string]struct {
		ref, want, says string
	}{
		"variable":         {"env:GATEWAY_TOKEN", "from-env", ""},
		"file":             {"file:" + file, "from-file", ""},
		"variable not set": {"env:NOT_THERE", "", "NOT_THERE"},
		"no such file":     {"file:" + file + ".gone", "", file + ".gone"},
		"two words":        {"env:TWO_WORDS", "", "TWO_WORDS"},
		"too long":         {"env:LONG", "", "LONG"},
		"the secret":       {"hush", "", "env:NAME"},
		"no variable name": {"env:hush hush", "", "env:NAME"},
		"relative path":    {"file:hush", "", "env:NAME"},
		"empty":            {"", "", "env:NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret, err := target.ResolveCredential(tc.ref, func(name string) string { return env[name] }, os.ReadFile)
			if tc.says == "" {
				if err != nil || secret.Reveal() != tc.want {
					t.Fatalf("got %q, %v; want %q", secret.Reveal(), err, tc.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %v, want an error that says %q and shows no value", err, tc.says)
			}
		})
	}
	_, err := target.ResolveCredential("file:/x", nil, func(string) ([]byte, error) { return nil, os.ErrPermission })
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v, want the cause in the chain", err)
	}
}

func TestOnlyAReferenceMakesARegistration(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[target.Outcome]bool{
		target.Accepted: true, target.AlreadyRegistered: true, target.Held: false, target.Foreign: false,
		target.Lost: false, target.Wait: false, target.Rejected: false,
	} {
		s := target.Sent{Outcome: outcome, Reference: "R-1"}
		if s.Registered() != want {
			t.Errorf("%s with a reference: got %v", outcome, !want)
		}
		s.Reference = ""
		if s.Registered() {
			t.Errorf("%s without a reference counts as registered", outcome)
		}
	}
}

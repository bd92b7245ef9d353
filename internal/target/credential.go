package target

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
)

const redacted = "[redacted]"

// Secret is a credential that does not print itself: not by fmt with any verb, not in a log, not in JSON, nor as a
// member of something that is printed. Its zero value is no secret.
type Secret struct {
	// A pointer: fmt calls no methods on members that are not exported, it prints what is there. That is an address now.
	value *string
}

// NewSecret makes a Secret of a value that is known already (a test's).
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal gives the value, for the one place that sends it. It is empty for the zero Secret.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero says whether there is no secret.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Format implements fmt.Formatter.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// String implements fmt.Stringer.
func (s Secret) String() string { return redacted }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// maxCredential is far above any bearer token and far below a file named by mistake.
const maxCredential = 16 << 10

// ResolveCredential reads the credential that ref names: env:NAME from the environment, file:/path from a file (one line;
// line ends around it do not count). getenv and readFile are os.Getenv and os.ReadFile. Errors name the variable or the
// file, never a value; and where ref has neither form they do not repeat ref, because it may be the secret itself.
func ResolveCredential(ref string, getenv func(string) string, readFile func(string) ([]byte, error)) (Secret, error) {
	if name, ok := strings.CutPrefix(ref, "env:"); ok && isVariableName(name) {
		return credential("environment variable "+name, getenv(name))
	}
	if path, ok := strings.CutPrefix(ref, "file:"); ok && filepath.IsAbs(path) {
		content, err := readFile(path)
		if err != nil {
			return Secret{}, fmt.Errorf("read the credential: %w", err)
		}
		return credential("file "+path, strings.Trim(string(content), "\r\n"))
	}
	return Secret{}, errors.New("a credential is given by reference: env:NAME or file:/absolute/path")
}

func credential(where, value string) (Secret, error) {
	switch {
	case value == "":
		return Secret{}, fmt.Errorf("the %s, which should hold the credential, is empty or not set", where)
	case len(value) > maxCredential:
		return Secret{}, fmt.Errorf("the %s holds %d bytes, more than a credential has", where, len(value))
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		// It goes into a header; a blank or line end in it is a mistake at best.
		return Secret{}, fmt.Errorf("the %s must hold one word of printable ASCII characters", where)
	}
	return NewSecret(value), nil
}

// isVariableName: the names that every shell can set.
func isVariableName(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

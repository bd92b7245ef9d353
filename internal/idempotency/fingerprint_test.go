package idempotency

import (
	"encoding/hex"
	"testing"
)

// A stored fingerprint must be found again by every later version of this program.
func TestFingerprintOfVersion1NeverChanges(t *testing.T) {
	t.Parallel()
	got := NewFingerprint(1, []byte(`{"order":"SO-1"}`))
	// printf 'invoicebridge invoice request v1\n{"order":"SO-1"}' | sha256sum
	const want = "fc7f57fa1a85ac863b892f3a5116b8b7942298076fd591d0049cc582b45ca448"
	if hex.EncodeToString(got.Sum[:]) != want || got.Version != 1 {
		t.Errorf("got version %d, %x", got.Version, got.Sum)
	}
}

func TestFingerprintsOfTwoVersionsDiffer(t *testing.T) {
	t.Parallel()
	canonical := []byte(`{}`)
	if NewFingerprint(1, canonical).Sum == NewFingerprint(2, canonical).Sum {
		t.Error("the version is not part of what is hashed")
	}
}

func TestStoredFingerprintIsEqualToTheOneThatWasStored(t *testing.T) {
	t.Parallel()
	made := NewFingerprint(1, []byte(`{}`))
	read, err := StoredFingerprint(1, made.Sum[:])
	if err != nil || read != made {
		t.Errorf("got %v, %v", read, err)
	}
	if _, err := StoredFingerprint(1, made.Sum[:31]); err == nil {
		t.Error("a cut sum was taken")
	}
}

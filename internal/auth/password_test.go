package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
)

const goodPassword = "correct horse battery"

func TestPasswordIsRecognisedByItsHashAndNothingElseIs(t *testing.T) {
	t.Parallel()
	h := NewHasher()
	hash, err := h.Hash(t.Context(), "kim", goodPassword+" é")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("%q, %v", hash, err)
	}
	for password, want := range map[string]bool{
		goodPassword + " é": true, goodPassword + " e\u0301": true, // the same letter from another keyboard
		goodPassword: false, goodPassword + " é ": false, "": false, strings.ToUpper(goodPassword) + " É": false,
		strings.Repeat("x", 1<<20): false,
	} {
		if got, err := h.Check(t.Context(), password, hash); got != want || err != nil {
			t.Errorf("%.40q: %t, %v, want %t", password, got, err, want)
		}
	}
	if got, err := h.Check(t.Context(), "", ""); got || err != nil {
		t.Errorf("no password kept, none given: %t, %v", got, err)
	}
}

func TestPasswordsThatAreTooShortOrHaveTheNameInThemAreRefused(t *testing.T) {
	t.Parallel()
	h := NewHasher()
	for password, want := range map[string]bool{
		"elevenchars": false, "twelve chars": true, "ääääääääääää": true, strings.Repeat("x", 1000): true,
		strings.Repeat("x", 1001): false, "this is KIM's password": false, "not text \xff\xff\xff": false,
	} {
		if _, err := h.Hash(t.Context(), "kim", password); (err == nil) != want {
			t.Errorf("%.40q: %v, want it taken: %t", password, err, want)
		}
	}
}

func TestNoMoreHashesThanPlacesAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	h := NewHasher()
	for range hashesAtOnce {
		h.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, hash := range []string{"", "$argon2id$"} { // whether or not there is something to compare with
		if _, err := h.Check(ctx, goodPassword, hash); !errors.Is(err, context.Canceled) {
			t.Errorf("without a free place: %v, want to wait for one", err)
		}
	}
	<-h.places
	if _, err := h.Check(t.Context(), goodPassword, ""); err != nil {
		t.Errorf("with a free place: %v", err)
	}
	if len(h.places) != hashesAtOnce-1 {
		t.Error("the place was not given back")
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestEveryInvoiceIsRegisteredOnceAtBothTargetsThroughAllFaults(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := setup(t)
	for _, run := range []string{"first", "second"} {
		var out bytes.Buffer
		if err := p.run(ctx, &out, "--once"); err != nil {
			t.Fatalf("%s run: %v\n%s", run, err, out.String())
		}
		for _, row := range []string{`registrations\s+80 `, `registered twice\s+0 `} {
			if !regexp.MustCompile(row).MatchString(out.String()) {
				t.Errorf("%s run: there is no row %s in\n%s", run, row, out.String())
			}
		}
	}
}

func TestWhatIsWrongWithRegistrationsIsTold(t *testing.T) {
	t.Parallel()
	if err := (registrations{Registered: 3}).verdict(0); err != nil {
		t.Errorf("all is well, but: %v", err)
	}
	err := errors.Join(registrations{Twice: 1, Failed: 2, Open: 3}.verdict(0))
	for _, want := range []string{"1 registrations beyond", "2 registrations have failed", "3 registrations are still open"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

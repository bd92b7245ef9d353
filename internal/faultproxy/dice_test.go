package faultproxy

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeedAndSequenceDecide(t *testing.T) {
	t.Parallel()
	rates := Rates{Reset: 0.1, Hold: 0.1, Cut: 0.1, BadGateway: 0.1, Duplicate: 0.1, Delay: 0.1, Refuse: 0.1}
	const n = 20_000
	draw := func(seed uint64) ([]Fault, map[Fault]int) {
		d, list, count := newDice(seed, rates), make([]Fault, n), map[Fault]int{}
		for i := range list {
			list[i] = d.throw()
			count[list[i]]++
		}
		return list, count
	}
	one, count := draw(7)
	again, _ := draw(7)
	other, _ := draw(8)
	if !cmp.Equal(one, again) {
		t.Error("one seed gave two sequences")
	}
	if cmp.Equal(one, other) {
		t.Error("two seeds gave one sequence")
	}
	for _, s := range rates.shares() {
		if got := count[s.fault]; got < n*9/100 || got > n*11/100 { // over four standard deviations
			t.Errorf("%s struck %d of %d", s.fault, got, n)
		}
	}
	if got := count[None]; got < n*28/100 || got > n*32/100 {
		t.Errorf("%d of %d met no fault", got, n)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	upstream, _ := url.Parse("http://127.0.0.1:1")
	zero := 0.0
	for want, cfg := range map[string]Config{
		"rate of cut is 1.5":            {Upstream: upstream, Rates: Rates{Cut: 1.5}},
		"rate of delay is -0.1":         {Upstream: upstream, Rates: Rates{Delay: -0.1}},
		"rate of reset is NaN":          {Upstream: upstream, Rates: Rates{Reset: zero / zero}},
		"the rates add up to 1.2":       {Upstream: upstream, Rates: Rates{Cut: 0.6, Delay: 0.6}},
		"no upstream":                   {},
		"times and limits can't be neg": {Upstream: upstream, Delay: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	tenTenths := Rates{Reset: 0.1, Hold: 0.2, Cut: 0.1, BadGateway: 0.2, Duplicate: 0.1, Delay: 0.2, Refuse: 0.1}
	if err := tenTenths.Validate(); err != nil {
		t.Errorf("rates of 1 in all: %v", err)
	}
}

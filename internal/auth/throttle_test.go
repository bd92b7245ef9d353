package auth

import (
	"testing"
	"time"
)

func TestWaitDoublesWithEachFailureBeyondTheFreeOnesUpToALimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failures int
		want     time.Duration
	}{
		{0, 0}, {4, 0}, {5, time.Second}, {6, 2 * time.Second}, {9, 16 * time.Second}, {14, 512 * time.Second},
		{15, waitMost}, {16, waitMost}, {1001, waitMost},
	} {
		if got := delay(Failures{Count: c.failures}, 5); got != c.want {
			t.Errorf("after %d failures: %s, want %s", c.failures, got, c.want)
		}
	}
	if got := delay(Failures{Count: 9, Age: 10 * time.Second}, 5); got != 6*time.Second {
		t.Errorf("10 s after the ninth failure: %s, want 6s", got)
	}
	if got := delay(Failures{Count: 9, Age: time.Minute}, 5); got != 0 {
		t.Errorf("a minute after the ninth failure: %s, want none", got)
	}
}

func TestNameAloneMakesNobodyWaitButShortensThePatience(t *testing.T) {
	t.Parallel()
	owner := newTry("kim", "192.0.2.1")
	for name, c := range map[string]struct {
		failed []Failures
		want   bool
	}{
		"nothing":                                {nil, false},
		"a thousand failures of the name":        {[]Failures{{owner.name, 1000, 0}}, false},
		"and one from here":                      {[]Failures{{owner.name, 1000, 0}, {owner.pair, 1, 0}}, true},
		"just enough of them, and one from here": {[]Failures{{owner.name, suspiciousName, 0}, {owner.pair, 1, 0}}, true},
		"some failures of the name, one here":    {[]Failures{{owner.name, suspiciousName - 1, 0}, {owner.pair, 1, 0}}, false},
		"typing errors":                          {[]Failures{{owner.pair, freeOfPair - 1, 0}}, false},
		"too many of them":                       {[]Failures{{owner.pair, freeOfPair, 0}}, true},
		"an office's":                            {[]Failures{{owner.address, freeOfAddress - 1, 0}}, false},
		"an address that tries name after name":  {[]Failures{{owner.address, freeOfAddress, 0}}, true},
	} {
		if got := owner.wait(c.failed) > 0; got != c.want {
			t.Errorf("%s: has to wait: %t, want %t", name, got, c.want)
		}
	}
}

func TestAddressOfOneCustomerIsOneSubject(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::9": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "": "unknown", "pipe": "unknown",
	} {
		if got := network(address); got != want {
			t.Errorf("%q counts as %q, want %q", address, got, want)
		}
	}
}

package invoice

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/problem"
)

// membersOf makes members of "tenant key order".
func membersOf(t interface{ Fatal(...any) }, texts ...string) (members []*member) {
	for _, text := range texts {
		f := strings.Fields(text)
		key, err := idempotency.ParseKey([]string{f[1]})
		if err != nil {
			t.Fatal(err)
		}
		r := &erpapi.InvoiceRequest{Source: "s", Order: f[2]}
		members = append(members, &member{Command: Command{Tenant: f[0], Key: key, Request: r}, place: orderOfRequest(f[0], r)})
	}
	return members
}

func describe(round []*member) (all []string) {
	for _, m := range round {
		all = append(all, fmt.Sprintf("%s %s %s", m.Tenant, m.Key, m.Request.Order))
	}
	return all
}

func TestRoundsKeepApartWhatSharesAKeyOrAnOrder(t *testing.T) {
	t.Parallel()
	var got [][]string
	for _, round := range rounds(membersOf(t, "a 1 x", "a 1 y", "a 2 y", "b 1 x", "a 3 x", "a 4 z")) {
		got = append(got, describe(round))
	}
	want := [][]string{{"a 1 x", "a 4 z"}, {"a 1 y", "a 3 x"}, {"a 2 y"}, {"b 1 x"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRoundsHoldEveryMemberOnceAndKeepTheSequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[ab] [1-6] [u-z]`), 0, 30).Draw(t, "members")
		members := membersOf(t, texts...)
		place := map[*member]int{}
		for i, round := range rounds(members) {
			keys, orders := map[idempotency.Key]bool{}, map[order]bool{}
			for _, m := range round {
				if _, twice := place[m]; twice || keys[m.Key] || orders[m.order()] || m.Tenant != round[0].Tenant {
					t.Fatalf("round %v", describe(round))
				}
				place[m], keys[m.Key], orders[m.order()] = i, true, true
			}
		}
		for i, a := range members {
			for _, b := range members[i+1:] {
				if a.Tenant == b.Tenant && (a.Key == b.Key || a.order() == b.order()) && place[a] >= place[b] {
					t.Fatalf("%v overtakes %v", describe([]*member{b}), describe([]*member{a}))
				}
			}
		}
		if len(place) != len(members) {
			t.Fatalf("%d of %d members are in a round", len(place), len(members))
		}
	})
}

func TestRoundsAreBounded(t *testing.T) {
	t.Parallel()
	var texts []string
	for i := range maxRound + 1 {
		texts = append(texts, fmt.Sprintf("a %d o%[1]d", i))
	}
	if got := rounds(membersOf(t, texts...)); len(got) != 2 || len(got[0]) != maxRound {
		t.Errorf("%d rounds, the first of %d", len(got), len(got[0]))
	}
}

func TestNumbersAreWrittenWithPrefixYearAndDigits(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]number{
		"INV-2026-000001":  {counter{"INV", 2026}, 6, 1},
		"CN-0001-000042":   {counter{"CN", 1}, 6, 42},
		"X-2026-7":         {counter{"X", 2026}, 1, 7},
		"INV-2026-1000000": {counter{"INV", 2026}, 6, 1000000},
	} {
		if n.String() != want {
			t.Errorf("got %s, want %s", n, want)
		}
	}
}

func TestCursorsGiveTheirPositionBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		micros := rapid.Int64Range(-62135596800000000, math.MaxInt64).Draw(t, "micros")
		p := position{microTime(micros), id}
		if got, err := parseCursor(p.cursor()); err != nil || got != p {
			t.Fatalf("%v became %v, %v", p, got, err)
		}
	})
}

func TestForgedCursorsAreMalformed(t *testing.T) {
	t.Parallel()
	good := position{microTime(0), uuid.UUID{}}.cursor()
	for _, cursor := range []string{
		"x", "!", good + "A", good[1:], good[:len(good)-1], "Ag" + good[2:], strings.Repeat("A", 1000), "\x00",
		position{microTime(math.MinInt64), uuid.UUID{}}.cursor(),
	} {
		if _, err := parseCursor(cursor); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%q gives %v", cursor, err)
		}
	}
}

package postgres

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestAnOldTransactionIsToldAgainWheneverItsAgeHasDoubled(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	watch := NewTransactions(nil, 5*time.Minute, slog.New(slog.NewTextHandler(&log, nil)))
	first, second := transactionID{7, time.Unix(1, 0)}, transactionID{7, time.Unix(2, 0)}
	for _, look := range []struct {
		id   transactionID
		age  time.Duration
		told bool
	}{
		{first, 4 * time.Minute, false}, {first, 6 * time.Minute, true}, {first, 11 * time.Minute, false},
		{first, 12 * time.Minute, true}, {first, 23 * time.Minute, false}, {first, 24 * time.Minute, true},
		{second, time.Minute, false}, {second, 5 * time.Minute, true}, // another one of the same connection
		{first, 6 * time.Minute, true}, // what has ended is forgotten
	} {
		log.Reset()
		watch.note(t.Context(), []openTransaction{{id: look.id, age: look.age, state: "active"}})
		if told := strings.Contains(log.String(), "old transaction"); told != look.told {
			t.Errorf("%v after %s: told is %v", look.id, look.age, told)
		}
		if watch.ages != (transactionAges{oldest: look.age}) {
			t.Errorf("ages are %v", watch.ages)
		}
	}
}

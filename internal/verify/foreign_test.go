package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
)

// someERP is an implementation of POST /v1/invoices in memory, with a mistake of choice.
type someERP struct {
	mistake string
	noList  bool

	mu       sync.Mutex
	answers  map[string]string   // by key
	contents map[string][32]byte // by key
	orders   map[string][]string // invoices, by order
	number   int
	arrived  map[string]int           // requests, by key
	together map[string]chan struct{} // closed once a key has two requests
}

// The mistakes that real implementations have.
const (
	keysIgnored      = "every request makes an invoice"
	contentUnchecked = "a key's stored answer goes to whatever content comes with it"
	claimUnprotected = "another key makes another invoice for the same order"
	answerMadeAnew   = "a repeat gets another answer than the first"
	repeatUnmarked   = "a repeat is not told from a first time"
	raceUnprotected  = "two requests at once both find the key free"
	lostForgotten    = "key and claim are forgotten with the lost answer"
)

func (s *someERP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if s.noList {
			http.NotFound(w, r)
			return
		}
		s.list(w, r.URL.Query().Get("order"))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var request struct {
		Order string `json:"order"`
	}
	if json.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.issue(w, r.Header.Get("Idempotency-Key"), request.Order, sha256.Sum256(body))
}

func (s *someERP) issue(w http.ResponseWriter, key, order string, content [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived[key]++
	stored, known := s.answers[key]
	raced := s.mistake == raceUnprotected && strings.Contains(order, "-once-") && s.arrived[key] <= 2
	if raced {
		s.meet(key)
		known = false
	}
	lost := s.mistake == lostForgotten && strings.Contains(order, "-lost-")
	if known && s.mistake != keysIgnored {
		if s.contents[key] != content && s.mistake != contentUnchecked {
			refuse(w, http.StatusUnprocessableEntity, "idempotency-key-reused", `,"differences":["/lines/0/unit_price"]`)
			return
		}
		if s.mistake == answerMadeAnew {
			stored = strings.Replace(stored, `"note":"`, `"note":"again `, 1)
		}
		if s.mistake != repeatUnmarked {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		w.Header().Set("Location", "/v1/invoices/"+order)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, stored)
		return
	}
	if ids := s.orders[order]; len(ids) > 0 && s.mistake != keysIgnored && s.mistake != claimUnprotected && !raced && !lost {
		refuse(w, http.StatusConflict, "already-invoiced", fmt.Sprintf(`,"invoice":{"id":%q}`, ids[0]))
		return
	}
	s.number++
	id := fmt.Sprint("I-", s.number)
	answer := fmt.Sprintf(`{"id":%q,"order":%q,"note":""}`, id, order)
	s.orders[order] = append(s.orders[order], id)
	if !lost || s.arrived[key] > 1 {
		s.answers[key], s.contents[key] = answer, content
	}
	w.Header().Set("Location", "/v1/invoices/"+order)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

// meet waits, with the lock given up, until a key's second request is there.
func (s *someERP) meet(key string) {
	if s.together[key] == nil {
		s.together[key] = make(chan struct{})
	}
	both := s.together[key]
	if s.arrived[key] == 2 {
		close(both)
	}
	s.mu.Unlock()
	<-both
	s.mu.Lock()
}

func (s *someERP) list(w http.ResponseWriter, order string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := make([]string, 0, len(s.orders[order]))
	for range s.orders[order] {
		items = append(items, fmt.Sprintf(`{"order":%q}`, order))
	}
	fmt.Fprintf(w, `{"items":[%s],"next_cursor":null}`, strings.Join(items, ","))
}

func refuse(w http.ResponseWriter, status int, slug, more string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"/problems/%s"%s}`, slug, more)
}

func newSomeERP(t *testing.T, mistake string, noList bool) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(&someERP{
		mistake: mistake, noList: noList, arrived: map[string]int{}, together: map[string]chan struct{}{},
		answers: map[string]string{}, contents: map[string][32]byte{}, orders: map[string][]string{},
	})
	t.Cleanup(s.Close)
	return s
}

func verifyForeign(t *testing.T, urls ...string) ([]Row, string, error) {
	t.Helper()
	rows, err := Foreign{URLs: urls, Token: "t"}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	err = Report(&report, rows)
	return rows, report.String(), err
}

func TestAnImplementationThatKeepsTheContractPasses(t *testing.T) {
	t.Parallel()
	a := newSomeERP(t, "", false)
	rows, report, err := verifyForeign(t, a.URL, a.URL)
	if err != nil {
		t.Error(report)
	}
	for _, r := range rows {
		if r.Expected == 0 || r.Found != r.Expected {
			t.Errorf("%s counted %d of %d", r.Name, r.Found, r.Expected)
		}
	}
}

func TestEachMistakeIsFoundByTheCheckThatIsThereForIt(t *testing.T) {
	t.Parallel()
	for mistake, wantFailed := range map[string][]int{
		keysIgnored:      {0, 1, 2, 3, 4},
		contentUnchecked: {2},
		claimUnprotected: {4},
		answerMadeAnew:   {0, 1},
		repeatUnmarked:   {0, 1, 3},
		raceUnprotected:  {1},
		lostForgotten:    {3},
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			rows, report, err := verifyForeign(t, newSomeERP(t, mistake, false).URL)
			if !errors.Is(err, ErrDeviations) {
				t.Fatalf("%v\n%s", err, report)
			}
			for _, n := range wantFailed {
				if rows[n].Passed() {
					t.Errorf("check %d passed\n%s", n+1, report)
				}
			}
			if mistake == keysIgnored && rows[0].Duplicates != orders*(repeats-1) {
				t.Errorf("%d duplicates counted, want %d", rows[0].Duplicates, orders*(repeats-1))
			}
		})
	}
}

func TestAnImplementationWithoutAListIsJudgedByItsAnswers(t *testing.T) {
	t.Parallel()
	for mistake, wantFailed := range map[string]int{"": -1, raceUnprotected: 1, lostForgotten: 3} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			rows, report, _ := verifyForeign(t, newSomeERP(t, mistake, true).URL)
			for n, r := range rows {
				if r.Passed() != (n != wantFailed) {
					t.Errorf("check %d passed: %t\n%s", n+1, r.Passed(), report)
				}
			}
		})
	}
}

func TestWhatDoesNotIssueInvoicesIsNotChecked(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if _, err := (Foreign{URLs: []string{s.URL}, Token: "t"}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
	for _, address := range []string{"", "erp.example.com", "ftp://x"} {
		if _, err := (Foreign{URLs: []string{address}}).Run(t.Context()); err == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}

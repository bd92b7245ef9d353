// Package erpsim is a small ERP for tests of its clients: a real HTTP server that keeps invoices by key and claim as the
// contract says, and on which each answer can be spoilt after the commit. It checks no amounts and keeps nothing on disk.
package erpsim

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// Server is a running ERP. Close it.
type Server struct {
	URL string

	http   *httptest.Server
	mu     sync.Mutex
	onPost func(*Call)
	posts  []Post
	gets   int
	byKey  map[string]*entry
	claims map[string]*entry
}

type entry struct {
	hash    [sha256.Size]byte
	invoice erpapi.Invoice
}

// Post is one POST /v1/invoices that arrived whole.
type Post struct {
	N             int // from 1, over all keys
	Key           string
	BodyHash      [sha256.Size]byte
	Authorization string
}

// Answer is what the ERP has to say.
type Answer struct {
	Status   int
	Type     string
	Replayed bool
	Body     []byte
}

// Start starts a server on a free loopback port.
func Start() *Server {
	s := &Server{byKey: map[string]*entry{}, claims: map[string]*entry{}, onPost: func(c *Call) { c.Send(c.Commit()) }}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/invoices", s.post)
	mux.HandleFunc("GET /v1/operations/{key}", s.getOperation)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// Close ends the server and every call that it holds.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// OnPost replaces what happens to a POST. Without it every call commits and sends its answer.
func (s *Server) OnPost(handle func(*Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onPost = handle
}

// Posts are the POSTs so far, in the order in which they arrived.
func (s *Server) Posts() []Post {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Post(nil), s.posts...)
}

// Gets counts the questions after an operation.
func (s *Server) Gets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets
}

// Invoices are all invoices there are, by key.
func (s *Server) Invoices() map[string]erpapi.Invoice {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]erpapi.Invoice{}
	for key, e := range s.byKey {
		all[key] = e.invoice
	}
	return all
}

func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	call := &Call{
		Post: Post{
			N: len(s.posts) + 1, Key: r.Header.Get("Idempotency-Key"),
			BodyHash: sha256.Sum256(body), Authorization: r.Header.Get("Authorization"),
		},
		W: w, R: r, server: s, body: body,
	}
	s.posts = append(s.posts, call.Post)
	handle := s.onPost
	s.mu.Unlock()
	handle(call)
}

func (s *Server) getOperation(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("key")
	s.mu.Lock()
	s.gets++
	e := s.byKey[key]
	s.mu.Unlock()
	if e == nil {
		send(w, refusal(http.StatusNotFound, problem.NotFound, ""))
		return
	}
	send(w, jsonAnswer(http.StatusOK, erpapi.Operation{
		Key: key, Kind: "invoice", Status: "succeeded",
		Invoice: &erpapi.InvoiceLink{ID: e.invoice.ID, Number: e.invoice.Number},
	}))
}

// issue is the ERP's transaction.
func (s *Server) issue(post Post, body []byte) Answer {
	req, err := erpapi.DecodeInvoiceRequest(body)
	if err != nil {
		return refusal(http.StatusBadRequest, problem.MalformedRequest, "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byKey[post.Key]; e != nil {
		if e.hash != post.BodyHash {
			return refusal(http.StatusUnprocessableEntity, problem.IdempotencyKeyReused, `,"differences":["/lines/0/unit_price"]`)
		}
		answer := jsonAnswer(http.StatusCreated, e.invoice)
		answer.Replayed = true
		return answer
	}
	claim := fmt.Sprint(req.Source, "\x00", req.Order, "\x00", req.Role, "\x00", req.EffectiveSequence())
	if e := s.claims[claim]; e != nil {
		return refusal(http.StatusConflict, problem.AlreadyInvoiced, fmt.Sprintf(
			`,"invoice":{"id":%q,"number":%q,"operation_key":%q},"same_content":%t`,
			e.invoice.ID, e.invoice.Number, e.invoice.OperationKey, e.hash == post.BodyHash))
	}
	e := &entry{hash: post.BodyHash, invoice: erpapi.Invoice{
		ID: uuid.NewString(), Number: fmt.Sprintf("INV-2026-%06d", len(s.byKey)+1), Status: "issued",
		Source: req.Source, Order: req.Order, Role: req.Role, Sequence: req.EffectiveSequence(),
		OperationKey: post.Key, Currency: req.Currency, IssueDate: req.IssueDate, CreatedAt: time.Now().UTC(),
	}}
	s.byKey[post.Key], s.claims[claim] = e, e
	return jsonAnswer(http.StatusCreated, e.invoice)
}

func jsonAnswer(status int, v any) Answer {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types
	}
	return Answer{Status: status, Type: "application/json", Body: body}
}

func refusal(status int, t problem.Type, more string) Answer {
	return Answer{Status: status, Type: "application/problem+json", Body: []byte(fmt.Sprintf(
		`{"type":"/problems/%s","title":%q,"status":%d,"detail":%q%s}`, t, strings.ReplaceAll(string(t), "-", " "), status, "as the test wants it", more))}
}

func send(w http.ResponseWriter, a Answer) {
	w.Header().Set("Content-Type", a.Type)
	if a.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

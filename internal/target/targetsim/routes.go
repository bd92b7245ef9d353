package targetsim

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// maxBody is the most bytes of a request's body.
const maxBody = 8 << 20

func (s *Sim) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /einvoice/documents", s.target(s.submit))
	mux.HandleFunc("GET /einvoice/documents", s.target(s.lookup(einvoiceKind)))
	mux.HandleFunc("GET /einvoice/documents/{id}", s.target(s.document))
	mux.HandleFunc("POST /ledger/entries", s.target(s.create))
	mux.HandleFunc("POST /ledger/entries/{id}/post", s.target(s.post))
	mux.HandleFunc("GET /ledger/entries", s.target(s.lookup(ledgerKind)))
	mux.HandleFunc("GET /sim/effects", s.getEffects)
	mux.HandleFunc("GET /sim/requests", s.getRequests)
	mux.HandleFunc("POST /sim/script", s.postScript)
	mux.HandleFunc("POST /sim/advance", s.postAdvance)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

// target reads the body, checks the token and sends what h answers.
func (s *Sim) target(h func(r *http.Request, body []byte) reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		switch {
		case err != nil:
			s.write(w, r, refusal(http.StatusBadRequest, "body", "the body could not be read"))
		case !s.authorised(r):
			s.write(w, r, unauthorised(nil))
		default:
			s.write(w, r, h(r, body))
		}
	}
}

func (s *Sim) authorised(r *http.Request) bool {
	return s.cfg.Token == "" ||
		subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.cfg.Token)) == 1
}

func sum(body []byte) string {
	digest := sha256.Sum256(body)
	return hex.EncodeToString(digest[:])
}

// failed is the answer where the journal can't be written: nothing was applied.
func failed(err error) reply {
	return refusal(http.StatusInternalServerError, "simulator_broken", err.Error())
}

func (s *Sim) getEffects(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, jsonReply(http.StatusOK, s.Effects(r.URL.Query().Get("external_reference"))))
}

func (s *Sim) getRequests(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, jsonReply(http.StatusOK, map[string]any{"items": s.Requests(r.URL.Query().Get("external_reference"))}))
}

func (s *Sim) postScript(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ExternalReference string  `json:"external_reference"`
		Faults            []Fault `json:"faults"`
	}
	err := json.UnmarshalRead(http.MaxBytesReader(w, r.Body, maxBody), &in, json.RejectUnknownMembers(true))
	if err == nil {
		err = s.Script(in.ExternalReference, in.Faults...)
	}
	s.done(w, r, err)
}

func (s *Sim) postAdvance(w http.ResponseWriter, r *http.Request) {
	var in struct {
		By string `json:"by"`
	}
	err := json.UnmarshalRead(http.MaxBytesReader(w, r.Body, maxBody), &in, json.RejectUnknownMembers(true))
	var by time.Duration
	if err == nil {
		by, err = time.ParseDuration(in.By)
	}
	if err == nil {
		err = s.Advance(by)
	}
	s.done(w, r, err)
}

func (s *Sim) done(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.write(w, r, refusal(http.StatusBadRequest, "refused", err.Error()))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

package targetsim

import (
	"net"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
)

// manner is how a reply comes over the wire.
type manner int

const (
	whole  manner = iota
	broken        // the connection is reset before any answer
	cut           // the answer breaks off in the middle
	never         // no answer
)

// reply is one answer to be.
type reply struct {
	manner manner
	status int
	header http.Header
	body   []byte
	later  bool // it asks to come back after Config.Pause
}

func jsonReply(status int, v any) reply {
	body, err := json.Marshal(v)
	if err != nil {
		return reply{status: http.StatusInternalServerError, body: []byte(err.Error())}
	}
	return reply{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: append(body, '\n')}
}

func page(status int, text string) reply {
	return reply{
		status: status, header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		body: []byte("<!doctype html><title>" + text + "</title><h1>" + text + "</h1>\n"),
	}
}

// refusalView is an answer that says no.
type refusalView struct {
	Code     string       `json:"code"`
	Detail   string       `json:"detail"`
	Errors   []reasonView `json:"errors,omitzero"`
	Original *thingView   `json:"original,omitzero"`
}

type reasonView struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

func refusal(status int, code, detail string) reply {
	return jsonReply(status, refusalView{Code: code, Detail: detail})
}

func silence(*thing) reply    { return reply{manner: never} }
func reset(*thing) reply      { return reply{manner: broken} }
func badGateway(*thing) reply { return page(http.StatusBadGateway, "502 Bad Gateway") }
func loginPage(*thing) reply  { return page(http.StatusOK, "Please log in") }
func page404(*thing) reply    { return page(http.StatusNotFound, "404 Not Found") }

// half leaves the true answer as it is and breaks off in its middle; see (*Sim).finish.
func half(*thing) reply { return reply{manner: cut} }

func duplicateOwn(t *thing) reply {
	original := &thingView{ID: t.ID, ExternalReference: t.ExternalReference, Number: t.Number}
	if t.Kind == einvoiceKind || t.posted {
		original.Reference = t.Reference
	}
	return duplicateOf(t, original)
}

func duplicateBare(t *thing) reply { return duplicateOf(t, nil) }

func duplicateForeign(t *thing) reply {
	return duplicateOf(t, &thingView{
		ID: "foreign-1", ExternalReference: "another-operation", Number: "ANOTHER-1", Reference: "FOREIGN-1",
	})
}

// duplicateOf says it in the words of the thing's kind.
func duplicateOf(t *thing, original *thingView) reply {
	if t.Kind == ledgerKind {
		return jsonReply(http.StatusConflict, refusalView{
			Code: "already_entered", Detail: "there is an entry for this", Original: original,
		})
	}
	return jsonReply(http.StatusConflict, refusalView{
		Code: "already_submitted", Detail: "this was previously submitted", Original: original,
	})
}

func rejection(*thing) reply {
	return jsonReply(http.StatusUnprocessableEntity, refusalView{
		Code: "invalid_document", Detail: "the document breaks 2 rules",
		Errors: []reasonView{
			{"/customer/vat_id", "BR-CO-9", "must begin with the country's prefix"},
			{"/lines/0/vat_rate", "BR-S-5", "must be greater than 0"},
		},
	})
}

func throttled(*thing) reply { return pause(http.StatusTooManyRequests, "throttled") }
func busy(*thing) reply      { return pause(http.StatusServiceUnavailable, "busy") }

func pause(status int, code string) reply {
	r := refusal(status, code, "come back later")
	r.later = true
	return r
}

func redirect(*thing) reply {
	r := page(http.StatusTemporaryRedirect, "Moved")
	r.header.Set("Location", "/elsewhere")
	return r
}

func unauthorised(*thing) reply {
	return refusal(http.StatusUnauthorized, "unauthorised", "the token is not valid")
}

func internalError(*thing) reply {
	return refusal(http.StatusInternalServerError, "internal", "something went wrong")
}

func nonsense(*thing) reply {
	return jsonReply(http.StatusOK, listView{Items: []thingView{
		{ID: "foreign-1", ExternalReference: "another-operation", Number: "ANOTHER-1", Reference: "FOREIGN-1", Status: "accepted"},
	}})
}

// write sends r. A reply that never comes ends with the client's patience, or when the simulator stops.
func (s *Sim) write(w http.ResponseWriter, req *http.Request, r reply) {
	if r.later {
		r.header.Set("Retry-After", strconv.Itoa(int(s.cfg.Pause.Seconds())))
	}
	switch r.manner {
	case never:
		select {
		case <-req.Context().Done():
		case <-s.stopped:
		}
		panic(http.ErrAbortHandler)
	case broken:
		breakConnection(w)
	case cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
		writePart(w, r, r.body[:len(r.body)/2])
		panic(http.ErrAbortHandler)
	case whole:
		writePart(w, r, r.body)
	}
}

func writePart(w http.ResponseWriter, r reply, body []byte) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.WriteHeader(r.status)
	// The client may be gone; nothing here depends on it.
	_, _ = w.Write(body)
	_ = http.NewResponseController(w).Flush()
}

// breakConnection resets the connection (RST), as a crashed process's kernel does.
func breakConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

package postgres_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"invoicebridge/internal/postgres"
	"invoicebridge/internal/testdb"
)

// pooler is as much of a connection pooler as refusePooler sees: it announces a session number of its own and passes
// simple queries on, from every client to one and the same server session, or to one session a client.
type pooler struct {
	t      *testing.T
	dsn    string
	shared *pgproto3.Frontend // nil in session mode
	mu     sync.Mutex
}

func startPooler(t *testing.T, sharing bool) (dsn string) {
	t.Helper()
	p := &pooler{t: t, dsn: testdb.Empty(t)}
	if sharing {
		p.shared = p.session()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	t.Cleanup(clients.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	clients.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { p.serve(client) })
		}
	})
	return "postgres://anybody@" + listener.Addr().String() + "/any?sslmode=disable"
}

// session is one on the server.
func (p *pooler) session() *pgproto3.Frontend {
	conn, err := pgconn.Connect(context.Background(), p.dsn)
	if err != nil {
		p.t.Error(err)
		return nil
	}
	taken, err := conn.Hijack()
	if err != nil {
		p.t.Error(err)
		return nil
	}
	p.t.Cleanup(func() { _ = taken.Conn.Close() })
	return taken.Frontend
}

func (p *pooler) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	backend := pgproto3.NewBackend(client, client)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	session := p.shared
	if session == nil {
		session = p.session()
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	backend.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	backend.Send(&pgproto3.BackendKeyData{ProcessID: 4_000_000_000, SecretKey: []byte{1, 2, 3, 4}})
	backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for backend.Flush() == nil {
		message, err := backend.Receive()
		question, isQuery := message.(*pgproto3.Query)
		if err != nil || !isQuery || !p.pass(session, question, backend) {
			return
		}
	}
}

// pass has a whole question answered before the next one, of whichever client.
func (p *pooler) pass(session *pgproto3.Frontend, question *pgproto3.Query, client *pgproto3.Backend) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	session.Send(question)
	if session.Flush() != nil {
		return false
	}
	for {
		answer, err := session.Receive()
		if err != nil {
			return false
		}
		client.Send(answer)
		if _, last := answer.(*pgproto3.ReadyForQuery); last {
			return true
		}
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Case M4.
func TestMigrateRefusesAPoolerThatSharesSessions(t *testing.T) {
	t.Parallel()
	_, err := postgres.Migrate(t.Context(), startPooler(t, true), twoTables(), nil)
	if !errors.Is(err, postgres.ErrPooler) || strings.Contains(err.Error(), "can't be reached") {
		t.Errorf("got %v", err)
	}
}

func TestPoolerInSessionModeAndTheServerItselfAreTaken(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{"session mode": startPooler(t, false), "the server": testdb.Empty(t)} {
		if err := postgres.RefusePooler(t.Context(), connect(t, dsn)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

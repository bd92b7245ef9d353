package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/wire"
)

// The settings of the services that are checked: as a company would have them, except that nobody wants to wait for
// what has time at night.
const (
	tenant         = "verify"
	targetToken    = "verification"
	attemptTimeout = time.Second
	pollInterval   = 50 * time.Millisecond
	settleLimit    = 3 * time.Minute // longer than it takes to take over from a dead worker
	replicas       = 2
)

// server is the PostgreSQL server under all installations of a run.
type server struct{ embedded *postgres.Embedded }

// startServer starts one. It is not what gets killed here, so that nothing needs to be forced to disk.
func startServer(ctx context.Context, log *slog.Logger) (*server, error) {
	embedded, err := postgres.StartTemporary(ctx, postgres.EmbeddedConfig{Logger: log})
	if err != nil {
		return nil, err
	}
	return &server{embedded}, nil
}

// installation is a pair of databases with the built programs on them: replicas of each service, and a target.
type installation struct {
	programs       fleet.Programs
	erpDSN, crmDSN string
	erp, crm       *pgxpool.Pool // for counting, and for letting time pass

	erpToken, crmToken string // role writer
	erpAdmin, crmAdmin string // role admin

	target    *fleet.Process
	erps      []*fleet.Process
	workers   []*fleet.Process
	toERP     *wire.Proxy // what the workers know of the ERP
	processes []*fleet.Process
	wires     []*wire.Proxy
}

// newInstallation makes the databases, the tenant and its tokens. Nothing serves yet, except the target.
func newInstallation(ctx context.Context, p fleet.Programs, s *server, name string) (_ *installation, err error) {
	i := &installation{programs: p}
	defer func() {
		if err != nil {
			i.close()
		}
	}()
	for _, side := range []struct {
		suffix string
		dsn    *string
		pool   **pgxpool.Pool
	}{{"erp", &i.erpDSN, &i.erp}, {"crm", &i.crmDSN, &i.crm}} {
		database := "verify_" + name + "_" + side.suffix
		if err := s.embedded.CreateDatabase(ctx, database); err != nil {
			return nil, err
		}
		*side.dsn = s.embedded.DSN(database)
		*side.pool, err = postgres.OpenPool(ctx, postgres.PoolConfig{DSN: *side.dsn, ApplicationName: "verify", MaxConns: 4, MinConns: 1})
		if err != nil {
			return nil, err
		}
	}
	for _, side := range []struct {
		program, database string
		writer, admin     *string
	}{
		{"erp-api", i.erpEnv()[0], &i.erpToken, &i.erpAdmin}, {"crm-worker", "CRM_DATABASE_URL=" + i.crmDSN, &i.crmToken, &i.crmAdmin},
	} {
		if *side.writer, *side.admin, err = p.Administer(ctx, side.program, []string{side.database}, tenant); err != nil {
			return nil, err
		}
	}
	i.target, err = i.serve(ctx, fleet.TargetSim, []string{"TARGETSIM_TOKEN=" + targetToken})
	if err != nil {
		return nil, err
	}
	return i, nil
}

func (i *installation) erpEnv() []string {
	return []string{"ERP_DATABASE_URL=" + i.erpDSN, "TARGET_TOKEN=" + targetToken}
}

// addLedger makes every invoice from now on one that has to be registered at an accounting system that knows no keys.
func (i *installation) addLedger(ctx context.Context) error {
	_, err := i.programs.Command(ctx, "erp-api", i.erpEnv(), "target", "set", "--tenant", tenant, "--kind", "ledger",
		"--url", i.target.URL()+"/ledger", "--credential", "env:TARGET_TOKEN", "--locatable", "--absent-after", "1h")
	return err
}

// serve starts one program of the installation.
func (i *installation) serve(ctx context.Context, name string, env []string) (*fleet.Process, error) {
	s, err := i.programs.Serve(ctx, name, "127.0.0.1:0", env)
	if err != nil {
		return nil, err
	}
	i.processes = append(i.processes, s)
	return s, nil
}

// serveERPs starts the replicas of the ERP.
func (i *installation) serveERPs(ctx context.Context) error {
	for range replicas {
		s, err := i.serve(ctx, fleet.ERP, append(i.erpEnv(), "ERP_TARGET_TIMEOUT=1s", "ERP_REGISTER_SWEEP_INTERVAL=1s"))
		if err != nil {
			return err
		}
		i.erps = append(i.erps, s)
	}
	return nil
}

// serveWorkers starts the replicas of the CRM side, with a proxy between them and the ERP that follows the plan.
func (i *installation) serveWorkers(ctx context.Context, plan func(int) wire.Fault) (err error) {
	if i.toERP, err = i.wire(ctx, plan, i.erps...); err != nil {
		return err
	}
	for range replicas {
		if err := i.serveWorker(ctx, i.toERP); err != nil {
			return err
		}
	}
	return nil
}

func (i *installation) serveWorker(ctx context.Context, toERP *wire.Proxy) error {
	s, err := i.serve(ctx, fleet.CRM, append(i.crmEnv(toERP), "CRM_SWEEP_INTERVAL=1s"))
	if err != nil {
		return err
	}
	i.workers = append(i.workers, s)
	return nil
}

func (i *installation) crmEnv(toERP *wire.Proxy) []string {
	return []string{
		"CRM_DATABASE_URL=" + i.crmDSN, "ERP_URL=http://" + toERP.Addr(), "ERP_TOKENS=" + tenant + "=" + i.erpToken,
		"ATTEMPT_TIMEOUT=" + attemptTimeout.String(),
	}
}

// wire starts a proxy in front of processes.
func (i *installation) wire(ctx context.Context, plan func(int) wire.Fault, behind ...*fleet.Process) (*wire.Proxy, error) {
	upstreams := make([]string, len(behind))
	for n, s := range behind {
		upstreams[n] = s.Address
	}
	p, err := wire.Start(ctx, wire.Config{Upstreams: upstreams, Plan: plan})
	if err != nil {
		return nil, err
	}
	i.wires = append(i.wires, p)
	return p, nil
}

// close ends everything, the last one started first.
func (i *installation) close() {
	for _, p := range i.wires {
		p.Close()
	}
	for n := len(i.processes) - 1; n >= 0; n-- {
		i.processes[n].Stop()
	}
	for _, pool := range []*pgxpool.Pool{i.erp, i.crm} {
		if pool != nil {
			pool.Close()
		}
	}
}

// submit hands orders to a CRM replica as its API takes them.
func (i *installation) submit(ctx context.Context, n int, orders ...string) error {
	bodies := make([]string, len(orders))
	for k, order := range orders {
		bodies[k] = invoice{order: order, price: "10.00"}.body()
	}
	got := newEndpoint(i.workers[n%len(i.workers)].URL(), i.crmToken).do(ctx, http.MethodPost, "/v1/orders", "", "["+strings.Join(bodies, ",")+"]")
	if got.err != nil || got.status/100 != 2 {
		return fmt.Errorf("the orders were not taken: %s", got)
	}
	return nil
}

// names are the orders of one check.
func names(check string, n int) []string {
	orders := make([]string, n)
	for k := range orders {
		orders[k] = fmt.Sprintf("V-%s-%d", check, k)
	}
	return orders
}

// await returns once holds answers true.
func await(ctx context.Context, what string, holds func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for {
		ok, err := holds(ctx)
		if err == nil && ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("while waiting until %s: %w", what, err)
		}
		if !pause(ctx, pollInterval) {
			return fmt.Errorf("waited for %v in vain until %s", settleLimit, what)
		}
	}
}

// number runs a query that gives one number.
func number(ctx context.Context, pool *pgxpool.Pool, query string, args ...any) (n int, err error) {
	if err := pool.QueryRow(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	return n, nil
}

// delivered waits until all operations of a check's orders have succeeded.
func (i *installation) delivered(ctx context.Context, check string, operations int) error {
	return await(ctx, "all operations have succeeded", func(ctx context.Context) (bool, error) {
		n, err := number(ctx, i.crm, `SELECT count(*) FROM operations WHERE order_id LIKE $1 AND status = 'succeeded'`, "V-"+check+"-%")
		return n == operations, err
	})
}

// tell counts a check's invoices in the ERP's books, and holds both sides' books to what has to hold always.
func (i *installation) tell(ctx context.Context, f *findings, check string, expected int) error {
	perClaim, err := i.perClaim(ctx, check)
	if err != nil {
		return err
	}
	f.count(expected, perClaim)
	for what, query := range map[string]string{
		"numbers of the series are missing or there twice": `SELECT coalesce(max(series_number), 0) - count(DISTINCT series_number) + count(*) - count(DISTINCT series_number) FROM invoices`,
	} {
		if n, err := number(ctx, i.erp, query); err != nil {
			return err
		} else if n != 0 {
			f.deviate("%d %s", n, what)
		}
	}
	return i.compare(ctx, f, check)
}

func (i *installation) perClaim(ctx context.Context, check string) (map[string]int, error) {
	rows, err := i.erp.Query(ctx, `SELECT order_id || ' ' || role || ' ' || sequence, count(*) FROM invoices WHERE order_id LIKE $1 GROUP BY 1`, "V-"+check+"-%")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	perClaim := map[string]int{}
	for rows.Next() {
		var claim string
		var n int
		if err := rows.Scan(&claim, &n); err != nil {
			return nil, err
		}
		perClaim[claim] = n
	}
	return perClaim, rows.Err()
}

// compare holds what the CRM side knows of its operations to what the ERP has.
func (i *installation) compare(ctx context.Context, f *findings, check string) error {
	rows, err := i.crm.Query(ctx, `SELECT key, coalesce(invoice_number, '') FROM operations WHERE order_id LIKE $1`, "V-"+check+"-%")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key, invoiceNumber string
		if err := rows.Scan(&key, &invoiceNumber); err != nil {
			return err
		}
		n, err := number(ctx, i.erp, `SELECT count(*) FROM invoices WHERE operation_key = $1 AND number = $2`, key, invoiceNumber)
		if err != nil {
			return err
		}
		if n != 1 {
			f.deviate("operation %s says that it made invoice %q; the ERP does not", key, invoiceNumber)
		}
	}
	return rows.Err()
}

// effects asks the target how many entries it has for each invoice.
func (i *installation) effects(ctx context.Context) (perInvoice map[string]int, err error) {
	got := newEndpoint(i.target.URL(), targetToken).do(ctx, http.MethodGet, "/sim/effects", "", "")
	var summary struct {
		Items []struct {
			ExternalReference string `json:"external_reference"`
			Count             int    `json:"count"`
		} `json:"items"`
	}
	if got.err != nil || got.status != http.StatusOK {
		return nil, fmt.Errorf("the target does not tell its entries: %s", got)
	}
	if err := json.Unmarshal([]byte(got.body), &summary); err != nil {
		return nil, fmt.Errorf("the target's entries: %w", err)
	}
	perInvoice = map[string]int{}
	for _, item := range summary.Items {
		perInvoice[item.ExternalReference] = item.Count
	}
	return perInvoice, nil
}

// script tells the target how to answer the next requests.
func (i *installation) script(ctx context.Context, faults ...string) error {
	body, err := json.Marshal(map[string]any{"external_reference": "*", "faults": faults})
	if err != nil {
		return err
	}
	got := newEndpoint(i.target.URL(), targetToken).do(ctx, http.MethodPost, "/sim/script", "", string(body))
	if got.err != nil || got.status/100 != 2 {
		return errors.Join(fmt.Errorf("the target does not take its script: %s", got))
	}
	return nil
}

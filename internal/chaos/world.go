package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/wire"
)

const (
	tenant      = "chaos"
	targetToken = "chaos"
	replicas    = 2
	// totalTime is short, so that operations are left to people, who have to press replay.
	totalTime = 10 * time.Second

	// What takes minutes at real targets takes seconds here; the settle time outlasts all that the simulator does late,
	// and the longest request.
	targetLate   = 700 * time.Millisecond
	targetSettle = 4 * time.Second
)

// world is everything that runs: a PostgreSQL server, targets, two replicas of each service, and the wires between them.
type world struct {
	options  Options
	history  *History
	weather  *weather
	programs fleet.Programs

	dir      string
	dbMu     sync.Mutex // held while the server is being crashed and started again
	embedded *postgres.Embedded
	pools    map[string]*pgxpool.Pool // erp, crm

	sim        *targetsim.Sim
	simAddress string
	endSim     func()

	slots              map[string]*slot
	erpToken, crmToken string
	erpAdmin, crmAdmin string
	wires              []*wire.Proxy // by HTTP
	toDatabase         []*wire.Proxy // where the services find their databases
	recorders          []*recorder
	workersERP         *wire.Proxy
	load               *load
}

// newWorld starts everything. Whatever it returns is to be closed.
func newWorld(ctx context.Context, o Options, h *History) (*world, error) {
	w := &world{
		options: o, history: h, weather: newWeather(o.Seed, h), programs: o.Programs, pools: map[string]*pgxpool.Pool{},
		slots: map[string]*slot{}, endSim: func() {}, load: newLoad(o.Seed, h),
	}
	for _, step := range []func(context.Context) error{w.startDatabase, w.startTargets, w.administer, w.watchWhatIsFinal, w.startERPs, w.startWorkers} {
		if err := step(ctx); err != nil {
			return w, err
		}
	}
	return w, nil
}

// startDatabase starts a server that writes to disk: it will be stopped at once, and recovers.
func (w *world) startDatabase(ctx context.Context) (err error) {
	if w.dir, err = os.MkdirTemp("/tmp", "invoicebridge-chaos-"); err != nil {
		return err
	}
	if err := os.Chmod(w.dir, 0o755); err != nil { // as root the server is another user
		return err
	}
	if err := w.startServer(ctx); err != nil {
		return err
	}
	for _, name := range []string{"erp", "crm"} {
		if err := w.embedded.CreateDatabase(ctx, name); err != nil {
			return err
		}
		w.pools[name], err = postgres.OpenPool(ctx, postgres.PoolConfig{DSN: w.embedded.DSN(name), ApplicationName: "chaos", MaxConns: 4, MinConns: 1})
		if err != nil {
			return err
		}
	}
	server, err := url.Parse(w.embedded.DSN("postgres"))
	if err != nil {
		return err
	}
	socket := filepath.Join(server.Query().Get("host"), ".s.PGSQL."+server.Query().Get("port"))
	for range w.pools { // one for each service
		p, err := wire.Start(ctx, wire.Config{Upstreams: []string{socket}, Plan: w.weather.planDatabase})
		if err != nil {
			return err
		}
		w.toDatabase = append(w.toDatabase, p)
	}
	return nil
}

// dsn is a database's address for a service: by a wire.
func (w *world) dsn(database string, p *wire.Proxy) string {
	address, err := url.Parse(w.embedded.DSN(database))
	if err != nil {
		panic(err) // it was made here
	}
	address.Host, address.RawQuery = p.Addr(), "sslmode=disable"
	return address.String()
}

func (w *world) startServer(ctx context.Context) (err error) {
	w.embedded, err = postgres.StartEmbedded(ctx, postgres.EmbeddedConfig{
		Dir: filepath.Join(w.dir, "postgres"), Logger: slog.New(slog.DiscardHandler),
		Settings: map[string]string{"max_connections": "200"},
	})
	return err
}

// crashDatabase ends the server as a power failure would, and starts it again.
func (w *world) crashDatabase(ctx context.Context) error {
	w.dbMu.Lock()
	defer w.dbMu.Unlock()
	now, cancel := context.WithCancel(ctx)
	cancel()
	w.history.note("PostgreSQL is stopped at once")
	_ = w.embedded.Stop(now) // says that it was not orderly
	if err := w.startServer(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	w.history.note("PostgreSQL has recovered")
	return nil
}

func (w *world) startTargets(ctx context.Context) (err error) {
	w.sim, err = targetsim.Open(targetsim.Config{
		Journal: filepath.Join(w.dir, "targets.jsonl"), Token: targetToken, Seed: w.options.Seed, Rates: targetFaults(),
		Late: targetLate, Held: targetLate, Hidden: targetLate, Slow: targetLate / 4, Pause: targetLate,
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, w.sim.Close())
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.sim.Serve(serving, listener)
	}()
	w.endSim = func() { end(); <-ended }
	w.simAddress = listener.Addr().String()
	return nil
}

// targetFaults are the shares of requests that the targets treat badly. What looks like a wrong address is not among them:
// it is tried again only after ten minutes.
func targetFaults() map[targetsim.Fault]float64 {
	return map[targetsim.Fault]float64{
		targetsim.AcceptSilent: 0.01, targetsim.AcceptLate: 0.02, targetsim.ResetBefore: 0.02, targetsim.ResetAfter: 0.04,
		targetsim.HalfAnswer: 0.02, targetsim.DuplicateOwn: 0.02, targetsim.DuplicateBare: 0.02, targetsim.Hidden: 0.01,
		targetsim.BadGateway: 0.02, targetsim.Busy: 0.02,
		targetsim.PostLost: 0.03, targetsim.PostBadGateway: 0.03,
		targetsim.LookupError: 0.03, targetsim.LookupNonsense: 0.02,
	}
}

// administer migrates, and makes the tenant, its tokens and its targets.
func (w *world) administer(ctx context.Context) error {
	var err error
	if w.erpToken, w.erpAdmin, err = w.programs.Administer(ctx, fleet.ERP, w.erpEnv(), tenant); err != nil {
		return err
	}
	if w.crmToken, w.crmAdmin, err = w.programs.Administer(ctx, fleet.CRM, w.crmDatabase(), tenant); err != nil {
		return err
	}
	toTargets, err := w.wire(ctx, w.weather.planCuts, w.simAddress)
	if err != nil {
		return err
	}
	base := []string{"target", "set", "--tenant", tenant, "--credential", "env:TARGET_TOKEN", "--locatable", "--absent-after", targetSettle.String()}
	for _, kind := range targets() {
		args := slices.Concat(base, []string{"--kind", kind, "--url", "http://" + toTargets.Addr() + "/" + kind})
		if kind == keyedTarget {
			args = append(args, "--key-window", "24h")
		}
		if _, err := w.programs.Command(ctx, fleet.ERP, w.erpEnv(), args...); err != nil {
			return err
		}
	}
	return nil
}

const keyedTarget = "einvoice"

// targets are the kinds of those that every invoice is registered with: one that knows keys, and one that does not.
func targets() []string { return []string{keyedTarget, "ledger"} }

func (w *world) erpEnv() []string {
	return []string{
		"ERP_DATABASE_URL=" + w.dsn("erp", w.toDatabase[0]), "TARGET_TOKEN=" + targetToken, "ERP_TARGET_TIMEOUT=1s",
		"ERP_REGISTER_SWEEP_INTERVAL=1s", "ERP_SHUTDOWN_TIMEOUT=5s",
	}
}

func (w *world) crmDatabase() []string {
	return []string{"CRM_DATABASE_URL=" + w.dsn("crm", w.toDatabase[1])}
}

func (w *world) crmEnv() []string {
	return append(w.crmDatabase(), "ERP_URL=http://"+w.workersERP.Addr(), "ERP_TOKENS="+tenant+"="+w.erpToken, "ATTEMPT_TIMEOUT=1s",
		"TOTAL_TIME="+totalTime.String(), "CRM_SWEEP_INTERVAL=1s", "SHUTDOWN_TIMEOUT=5s")
}

// wire starts a proxy in front of addresses.
func (w *world) wire(ctx context.Context, plan func(int) wire.Fault, upstreams ...string) (*wire.Proxy, error) {
	p, err := wire.Start(ctx, wire.Config{Upstreams: upstreams, Plan: plan})
	if err == nil {
		w.wires = append(w.wires, p)
	}
	return p, err
}

// network adds up what proxies did.
func network(wires []*wire.Proxy) (sum wire.Stats) {
	for _, p := range wires {
		s := p.Stats()
		sum.Connections += s.Connections
		sum.Cut += s.Cut
		sum.Held += s.Held
		sum.Dropped += s.Dropped
		sum.Duplicated += s.Duplicated
	}
	return sum
}

func (w *world) startSlot(ctx context.Context, name, program string, env []string) (*slot, error) {
	s := &slot{name: name, program: program, env: env, history: w.history}
	w.slots[name] = s
	return s, s.start(ctx, w.programs)
}

func (w *world) startERPs(ctx context.Context) error {
	var recorded []string
	for n := range replicas {
		s, err := w.startSlot(ctx, erpName(n), fleet.ERP, w.erpEnv())
		if err != nil {
			return err
		}
		toERP, err := w.wire(ctx, w.weather.plan, s.address)
		if err != nil {
			return err
		}
		w.load.erps = append(w.load.erps, "http://"+toERP.Addr())
		r, err := startRecorder(ctx, w.history, s.address)
		if err != nil {
			return err
		}
		w.recorders = append(w.recorders, r)
		recorded = append(recorded, r.address)
	}
	w.load.erpToken = w.erpToken
	var err error
	w.workersERP, err = w.wire(ctx, w.weather.plan, recorded...)
	return err
}

func (w *world) startWorkers(ctx context.Context) error {
	for n := range replicas {
		s, err := w.startSlot(ctx, workerName(n), fleet.CRM, w.crmEnv())
		if err != nil {
			return err
		}
		toCRM, err := w.wire(ctx, w.weather.plan, s.address)
		if err != nil {
			return err
		}
		w.load.crms = append(w.load.crms, "http://"+toCRM.Addr())
	}
	w.load.crmToken = w.crmToken
	return nil
}

func erpName(n int) string    { return fmt.Sprintf("ERP %d", n+1) }
func workerName(n int) string { return fmt.Sprintf("worker %d", n+1) }

// close ends everything and takes it away.
func (w *world) close() {
	for _, p := range slices.Concat(w.wires, w.toDatabase) {
		p.Close()
	}
	var all sync.WaitGroup
	for _, s := range w.slots {
		all.Go(s.stop)
	}
	all.Wait()
	for _, r := range w.recorders {
		r.close()
	}
	w.endSim()
	for _, pool := range w.pools {
		pool.Close()
	}
	if w.embedded != nil {
		_ = w.embedded.Stop(context.Background())
	}
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

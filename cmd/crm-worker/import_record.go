package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/problem"
)

// recordTimeLimit bounds how long an import waits for being written down at its beginning.
const recordTimeLimit = 5 * time.Second

// importBook is where imports are written down for the operators to see. *crm.Console is one.
type importBook interface {
	BeginImport(ctx context.Context, tenant string, i crm.Import) (uuid.UUID, error)
	FinishImport(ctx context.Context, tenant string, i crm.Import) error
	RecordRefusal(ctx context.Context, r crm.Refusal)
}

// importTarget is where an import's orders go, and where it is written down. A dry run has neither.
type importTarget struct {
	orders orderfile.Submitter
	book   importBook
	log    *slog.Logger
}

// importRecord writes down one file. What becomes of the file does not depend on it: that it fails is only logged.
type importRecord struct {
	importTarget
	tenant string
	told   crm.Import // its ID is zero if the beginning could not be written down
}

// begin writes down that a file is being imported; if the process dies, that is what stays.
func (t importTarget) begin(ctx context.Context, c *ImportCmd, o orderfile.ImportOptions) *importRecord {
	r := &importRecord{importTarget: t, tenant: c.Tenant, told: crm.Import{
		File: filepath.Base(o.Name), Format: string(o.Format), KeepGood: o.KeepGood, Actor: c.Actor,
	}}
	if c.DryRun {
		r.book = nil
	}
	if r.book == nil {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeLimit)
	defer cancel()
	var err error
	if r.told.ID, err = t.book.BeginImport(ctx, c.Tenant, r.told); err != nil {
		t.log.WarnContext(ctx, "the import is not written down", "file", r.told.File, "error", err)
	}
	return r
}

// finish writes down what became of it, also when ctx has ended.
func (r *importRecord) finish(ctx context.Context, in *hashedFile, report *orderfile.Report, failure error) {
	if r.book == nil {
		return
	}
	if r.told.ID != uuid.Nil {
		r.tell(report, failure)
		r.told.SHA256, r.told.Size = in.sum(), in.size
		if err := r.book.FinishImport(ctx, r.tenant, r.told); err != nil {
			r.log.WarnContext(ctx, "the end of the import is not written down", "file", r.told.File, "error", err)
		}
	}
	if refusal, found := r.refusal(report, in.size); found && (failure == nil || report.Refusal == "") {
		r.book.RecordRefusal(ctx, refusal)
	}
}

func (r *importRecord) tell(report *orderfile.Report, failure error) {
	r.told.Stored, r.told.Rows, r.told.BlankRows, r.told.Orders = report.Stored, report.Rows, report.BlankRows, report.Orders
	if failure != nil {
		r.told.Failure = failure.Error()
	} else {
		r.told.Refusal = report.Refusal
	}
	for outcome, rows := range report.Counts {
		r.told.Counts = append(r.told.Counts, crm.ImportCount{Outcome: string(outcome), Rows: int64(rows)})
	}
	slices.SortFunc(r.told.Counts, func(a, b crm.ImportCount) int { return cmp.Compare(a.Outcome, b.Outcome) })
	// A file of thousands may be kept out by one row, and that one is looked for.
	for _, outcome := range []orderfile.Outcome{orderfile.Refused, orderfile.Unknown, orderfile.NotStored} {
		for i := range report.Results {
			if len(r.told.Refused) == crm.MaxImportRefusals {
				return
			}
			if row := &report.Results[i]; row.Outcome == outcome {
				r.told.Refused = append(r.told.Refused, crm.ImportRow{
					Line: int64(row.Line), Order: row.Order, Outcome: string(row.Outcome), Reason: row.Reason,
				})
			}
		}
	}
}

// refusal is the file among what was turned away, if it or rows of it were: one for the file, as it is one for a call with many orders.
func (r *importRecord) refusal(report *orderfile.Report, size int64) (refusal crm.Refusal, found bool) {
	refusal = crm.Refusal{
		Tenant: r.tenant, Channel: crm.ChannelImport, Size: size, Import: r.told.ID,
		By: audit.By{Actor: r.told.Actor},
	}
	switch n := report.Counts[orderfile.Refused]; {
	case report.Refusal != "":
		refusal.Problem = problem.New(problem.MalformedRequest, "The file %s was refused as a whole: %s", r.told.File, report.Refusal)
		return refusal, true
	case n == 0:
		return refusal, false
	default:
		refusal.Problem = problem.New(problem.InvalidOrder, "%d of the %d rows of the file %s were refused.", n, report.Rows, r.told.File)
	}
	for i := range report.Results {
		row := &report.Results[i]
		if row.Outcome != orderfile.Refused {
			continue
		}
		if refusal.Order == "" {
			refusal.Source, refusal.Order = row.Source, row.Order
		}
		refusal.Problem.Errors = append(refusal.Problem.Errors, problem.FieldError{
			Pointer: fmt.Sprintf("/line/%d", row.Line), Detail: row.Reason,
		})
		if len(refusal.Problem.Errors) == mostRefusals {
			break
		}
	}
	return refusal, true
}

// hashedFile hashes what is read from a file.
type hashedFile struct {
	in    io.Reader
	hash  hash.Hash
	size  int64
	whole bool // it was read to its end
}

func newHashedFile(in io.Reader) *hashedFile { return &hashedFile{in: in, hash: sha256.New()} }

func (f *hashedFile) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	f.hash.Write(p[:n]) // never fails: see its documentation
	f.size += int64(n)
	if errors.Is(err, io.EOF) {
		f.whole = true
	}
	return n, err
}

// rest reads what a refusal has left unread.
func (f *hashedFile) rest() {
	if !f.whole {
		_, _ = io.Copy(io.Discard, f) // an error leaves the hash untold
	}
}

// sum is the SHA-256 of the file; "" if not all of it was read.
func (f *hashedFile) sum() string {
	if !f.whole {
		return ""
	}
	return hex.EncodeToString(f.hash.Sum(nil))
}

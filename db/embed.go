// Package db holds the migrations of both databases; the sqlc queries beside them are compiled into
// internal/crmdb and internal/erpdb.
package db

import (
	"embed"
	"io/fs"
)

//go:embed migrations
var migrations embed.FS

// CRMMigrations are the goose migrations of the CRM side's database, at the root of the returned file system.
func CRMMigrations() fs.FS { return sub("migrations/crm") }

// ERPMigrations are the goose migrations of the ERP side's database, at the root of the returned file system.
func ERPMigrations() fs.FS { return sub("migrations/erp") }

func sub(dir string) fs.FS {
	f, err := fs.Sub(migrations, dir)
	if err != nil {
		panic(err) // the folder is part of the program: a typing error here, seen by any test
	}
	return f
}
